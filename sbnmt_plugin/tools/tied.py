"""Run a command that ends when the process that asked for it ends, by SIGKILL too.

    python -I tied.py PID COMMAND …

PID is who asked.  The command keeps the number of the process, so it can be waited for
and measured as if it had been started by itself.  The wish outlives the exec, but not a
fork: what the command starts is its own to end.  Linux; elsewhere nothing is tied.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # prctl(2)


def tie(parent: int, number: int = signal.SIGTERM) -> None:
    """Get a signal when the thread that started this process ends.

    Args:
        parent: its process; if that has ended already, the signal comes now.
        number: of the signal.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        return
    prctl(PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def main() -> None:
    parent, *words = sys.argv[1:]
    tie(int(parent))
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)


if __name__ == "__main__":
    main()
