"""Progress bars, on terminals alone: a log that a command is redirected to has none."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm


class Progress(tqdm):
    """A progress bar on standard error, if that is a terminal.

    Args:
        given: tqdm's own arguments.
    """

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, disable=None, **options)
