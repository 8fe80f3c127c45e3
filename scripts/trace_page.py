#!/usr/bin/env python3
"""Show how the two beams met, as one HTML page to step through.

    fairseq-interactive data --user-dir sbnmt_plugin --task sb_translation \
        --path sb/model.pt --beam 4 --sb-trace trace.jsonl < sentences
    trace_page.py --trace trace.jsonl --output trace.html

The page needs neither network nor server.  report.py --trace has the same view.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from texts import new_file, refuse_overwriting, run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", required=True, help="written by --sb-trace")
    parser.add_argument("--output", required=True, help="HTML file to write")
    parser.add_argument("--title", default="Two beams, step by step")
    args = parser.parse_args()
    refuse_overwriting(args.output, args.trace)
    from reporting import traces
    from reporting.page import render

    path = Path(args.trace)
    found = traces.read_traces(path)
    html = render(args.title, [path.name], [traces.section(found)], None, traces=found)
    with new_file(args.output) as file:
        file.write(html)
    print(args.output)


if __name__ == "__main__":
    run(main)
