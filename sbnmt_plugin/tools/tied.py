"""Run a command that ends when the process that started it ends, by SIGKILL too.

    python -I tied.py PID COMMAND …

PID is that process.  The command keeps the number of this one, so it can be waited for
and measured as if it had been started by itself.  Linux sends the signal after an exec,
too, but not to children: the command ends its own.  On other systems nothing is tied.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # prctl(2)


def tie(parent: int, number: int = signal.SIGTERM) -> None:
    """Have a signal sent here when the thread that started this process ends.

    Args:
        parent: its process; if that has ended already, the signal comes now.
        number: the signal's.
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
