"""GPUs of this machine for commands side by side, each of which takes the first."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

VISIBLE = "CUDA_VISIBLE_DEVICES"


def named() -> list[str]:
    """Return the GPUs that the user has chosen, or all that there are."""
    if (chosen := os.environ.get(VISIBLE)) is not None:
        return [name for name in chosen.split(",") if name]
    import torch  # which is slow to come, and known where models run

    return [str(place) for place in range(torch.cuda.device_count())]


class Lender:
    """Lends GPUs to commands, to each the one that the fewest have."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users: Counter[str] = Counter()

    @contextmanager
    def lend(self, wanted: bool) -> Iterator[dict[str, str]]:
        """Lend one, of several: the variables by which a command sees it alone."""
        if not wanted:
            yield {}
            return
        with self.lock:
            names = named()
            name = min(names, key=lambda x: self.users[x], default="")
            self.users[name] += 1
        try:
            yield {VISIBLE: name} if len(names) > 1 else {}
        finally:
            with self.lock:
                self.users[name] -= 1
