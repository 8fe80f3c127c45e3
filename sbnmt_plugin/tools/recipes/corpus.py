"""From raw text to the gold data folder."""

from __future__ import annotations

import functools
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.runner import Runner
from sbnmt_plugin.tools.recipes.settings import device


def exclusive(step: Callable[..., Any]) -> Callable[..., Any]:
    """Rows that need the same step at the same time wait for the first one's."""

    @functools.wraps(step)
    def locked(self: Corpus, *words: str) -> Any:
        with self.guard:
            lock = self.locks[step.__name__, words]
        with lock:
            return step(self, *words)

    return locked


class Corpus(Runner):
    """Texts of a recipe.  Each step calls those it needs and leaves a file when done.

    Args:
        folder: of the recipe.
        work: where to write.
        settings: recipe.yaml's.
        data: the user's raw files, where the recipe wants any.
    """

    def __init__(
        self,
        folder: Path,
        work: Path,
        settings: dict[str, Any],
        data: str | None = None,
    ) -> None:
        super().__init__(work, settings["environment"])
        self.folder = folder
        self.settings = settings
        self.data = data
        self.source, self.target = settings["source"], settings["target"]
        self.guard = threading.Lock()
        self.locks: dict[Any, threading.RLock] = defaultdict(threading.RLock)

    @property
    def device(self) -> list[str]:
        return device(self.settings)

    @exclusive
    def text(self) -> Path:
        """Tokenised text, and the test set's references as published."""
        folder = self.work / "text"
        if not (folder / f"test.{self.target}").exists():
            words = ["--output", folder, *self.settings["prepare"]]
            if self.data is not None:
                words += ["--data", self.data]
            self.own("text", "prepare", self.folder, *words)
        return folder

    @exclusive
    def bpe(self) -> Path:
        """Learn codes on the training text and split all texts; or leave them whole."""
        text, out, bpe = self.text(), self.work / "bpe", self.settings["bpe"]
        if bpe["kind"] == "none":
            return text
        languages = self.source, self.target
        for language in languages:
            joint = bpe["kind"] == "joint"
            codes = out / ("codes" if joint else f"codes.{language}")
            if not codes.exists():
                names = languages if joint else [language]
                words = ["learn", "--merges", bpe["merges"], "--codes", codes]
                words += [text / f"train.{name}" for name in names]
                self.own(f"bpe/{codes.name}", "bpe", *words)
            for split in ("train", "valid", "test"):
                name = f"{split}.{language}"
                if not (out / name).exists():
                    words = ["apply", "--codes", codes, text / name, out / name]
                    self.own(f"bpe/{name}", "bpe", *words)
        return out

    def binarise(self, folder: Path, train: Path, *words: Any) -> None:
        if folder.exists():
            return
        prefixes = ["--trainpref", train]
        for split in ("valid", "test"):
            prefixes += [f"--{split}pref", self.bpe() / split]
        pair = ["-s", self.source, "-t", self.target, "--destdir", folder]
        self.own(folder.name, "binarise", *pair, *prefixes, "--workers", 2, *words)

    @exclusive
    def gold_data(self) -> Path:
        """The gold text, binarised; its dictionaries are everyone's."""
        folder = self.work / "data"
        self.binarise(folder, self.bpe() / "train", *self.settings["preprocess"])
        return folder
