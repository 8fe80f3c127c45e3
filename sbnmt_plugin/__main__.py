"""``sbnmt``, also as ``python -m sbnmt_plugin``: find a step and run it.

A recipe starts fairseq's commands by their names in the same way, so that they leave
out the messages that our own steps leave out.
"""

from __future__ import annotations

import difflib
import importlib
import sys

from sbnmt_plugin import __version__, quiet
from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.command_names import GROUPS, PLUGIN, RETIRED, STEPS
from sbnmt_plugin.tools.launch import FAIRSEQ, run_fairseq

COMMANDS = "sbnmt_plugin.tools.commands"


def main() -> None:
    """Run the step that the command line names."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        run(lambda: print(overview()))
        return
    if words[0] == "--version":
        run(lambda: print(__version__))
        return
    step = words[0]
    quiet.silence()
    if step in FAIRSEQ:
        sys.argv = words
        run_fairseq(step)
        return
    if step not in STEPS:
        reason = f"the step must be one of {', '.join(STEPS)}, but is {step!r}"
        for close in difflib.get_close_matches(step, STEPS, n=1):
            reason += f" (did you mean {close}?)"
        if step in RETIRED:
            reason = f"sbnmt {step} is gone: {RETIRED[step]}"
        print(f"sbnmt: error: {reason}; see sbnmt --help", file=sys.stderr)
        sys.exit(2)
    sys.argv = [f"sbnmt {step}", *words[1:]]  # the name in messages
    module = importlib.import_module(f"{COMMANDS}.{step.replace('-', '_')}")
    run(module.main)


def overview() -> str:
    """Return the text of ``sbnmt --help``: all steps by group, in order of use."""
    width = max(map(len, STEPS))
    lines = []
    for title, steps in GROUPS.items():
        named = [f"  {step:<{width}}  {text}" for step, text in steps.items()]
        lines += [f"{title}:", *named, ""]
    steps_by_group = "\n".join(lines)
    return f"""usage: sbnmt STEP [options]

Synchronous Bidirectional NMT with fairseq; the steps in order of use.

{steps_by_group}
sbnmt STEP --help says more.  Training, decoding and interactive use are fairseq's own
commands, with --user-dir {PLUGIN}
--task sb_translation."""


if __name__ == "__main__":
    main()
