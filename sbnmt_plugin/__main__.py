"""``sbnmt``, also as ``python -m sbnmt_plugin``: finds a step and runs it."""

from __future__ import annotations

import importlib
import sys

from sbnmt_plugin.tools import quiet
from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.command_names import PLUGIN, RETIRED, STEPS

COMMANDS = "sbnmt_plugin.tools.commands"


def main() -> None:
    """Run the step that the command line names."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        run(lambda: print(overview()))
        return
    step = words[0]
    if step not in STEPS:
        remedy = RETIRED.get(step, "see sbnmt --help")
        print(
            f"sbnmt: error: the step must be one of {', '.join(STEPS)}, but is "
            f"{step!r}: {remedy}",
            file=sys.stderr,
        )
        sys.exit(2)
    quiet.silence()
    sys.argv = [f"sbnmt {step}", *words[1:]]  # the name in messages
    module = importlib.import_module(f"{COMMANDS}.{step.replace('-', '_')}")
    run(module.main)


def overview() -> str:
    """All steps, in order of use."""
    width = max(map(len, STEPS))
    lines = [f"  {step:<{width}}  {text}" for step, text in STEPS.items()]
    return "\n".join(
        [
            "usage: sbnmt STEP [options]",
            "",
            "Synchronous Bidirectional NMT with fairseq; the steps in order of use:",
            "",
            *lines,
            "",
            "sbnmt STEP --help says more.  Training, decoding and interactive use are "
            "fairseq's own",
            f"commands, with --user-dir {PLUGIN}",
            "--task sb_translation.",
        ]
    )


if __name__ == "__main__":
    main()
