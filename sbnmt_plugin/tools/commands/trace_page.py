r"""Show a search in both directions, step by step, as one HTML page.

    fairseq-interactive data --user-dir sbnmt_plugin --task sb_translation \
        --path sb/model.pt --beam 4 --sb-trace trace.jsonl < sentences
    sbnmt trace-page --trace trace.jsonl --output trace.html

The page needs neither network nor server.
"""

from __future__ import annotations

from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.text import refuse_overwriting
from sbnmt_plugin.tools.unfinished import new_file


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--trace", required=True, help="written by --sb-trace")
    parser.add_argument("--output", required=True, help="HTML file to write")
    args = parser.parse_args()
    refuse_overwriting(args.output, args.trace)
    with command.extra("report"):
        from sbnmt_plugin.tools.report import traces
        from sbnmt_plugin.tools.report.page import render

    path = Path(args.trace)
    found = traces.read_traces(path)
    html = render("Two beams, step by step", [path.name], [traces.section(found)])
    with new_file(args.output) as file:
        file.write(html)
    print(args.output)
