"""From raw text to the gold data folder."""

from __future__ import annotations

import functools
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.settings import device
from sbnmt_plugin.tools.recipes.step import Bench, Step, words_of


def exclusive(step: Callable[..., Any]) -> Callable[..., Any]:
    """Rows that need the same step at the same time wait for the first one's."""

    @functools.wraps(step)
    def locked(self: Corpus, *words: str) -> Any:
        with self.guard:
            lock = self.locks[step.__name__, words]
        with lock:
            return step(self, *words)

    return locked


class Corpus:
    """Texts of a recipe.  Each step calls those it needs and leaves a file when done.

    Args:
        bench: runs the steps, or writes them down.
        folder: of the recipe.
        settings: recipe.yaml's.
        data: the user's raw files, where the recipe wants any.
    """

    def __init__(
        self,
        bench: Bench,
        folder: Path,
        settings: dict[str, Any],
        data: Path | None = None,
    ) -> None:
        self.bench = bench
        self.work = bench.work
        self.folder = folder
        self.settings = settings
        self.data = data
        self.source, self.target = settings["source"], settings["target"]
        self.guard = threading.Lock()
        self.locks: dict[Any, threading.RLock] = defaultdict(threading.RLock)

    @property
    def device(self) -> list[str]:
        return device(self.settings)

    def step(
        self, name: str, purpose: str, makes: Path, *words: Any, gpus: int | None = None
    ) -> None:
        """Do a step, whether or not it has been done."""
        self.bench.run(Step(name, purpose, words_of(*words), makes, gpus))

    def gpus(self, count: int = 1) -> int:
        """How many GPUs a step wants that runs a model: none, if that is on a CPU."""
        return 0 if self.device else count

    @property
    def last_text(self) -> Path:
        """The file that tells that all texts are there."""
        return self.work / "text" / f"test.{self.target}"

    def has_text(self) -> bool:
        """Whether raw files are not read any more."""
        return self.bench.has(self.last_text)

    @exclusive
    def text(self) -> Path:
        """Tokenised text, and the test set's references as published.

        Raises:
            ValueError: the recipe wants raw files, and none are given.
        """
        folder = self.work / "text"
        if not self.has_text():
            wanted = self.settings["data"]
            if wanted and self.data is None:
                raise ValueError(
                    f"--data must name a folder with {wanted} ({self.folder}), but is "
                    "not given"
                )
            words = ["--output", folder, *self.settings["prepare"]]
            if self.data is not None:
                words += ["--data", self.data]
            purpose = "Tokenise the raw text" if wanted else "Write the text"
            words = ["sbnmt", "prepare", self.folder, *words]
            self.step("text", purpose, self.last_text, *words)
        return folder

    @exclusive
    def bpe(self) -> Path:
        """Learn codes on the training text and split all texts; or leave them whole."""
        text, out = self.text(), self.work / "bpe"
        if self.settings["bpe"]["kind"] == "none":
            return text
        for language in self.source, self.target:
            codes = self.codes(language)
            for split in ("train", "valid", "test"):
                self.split(codes, f"{split}.{language}")
        return out

    def codes(self, language: str) -> Path:
        """Merges of a language, or of both together."""
        bpe, names = self.settings["bpe"], (self.source, self.target)
        joint = bpe["kind"] == "joint"
        name = "codes" if joint else f"codes.{language}"
        codes = self.work / "bpe" / name
        if not self.bench.has(codes):
            used = names if joint else (language,)
            words = ["sbnmt", "bpe", "learn", "--merges", bpe["merges"]]
            words += ["--codes", codes]
            words += [self.work / "text" / f"train.{name}" for name in used]
            purpose = f"Learn byte-pair merges of {' and '.join(used)}"
            self.step(f"bpe/{codes.name}", purpose, codes, *words)
        return codes

    def split(self, codes: Path, name: str) -> None:
        """Apply merges to a text."""
        text, output = (self.work / folder / name for folder in ("text", "bpe"))
        if not self.bench.has(output):
            words = ["sbnmt", "bpe", "apply", "--codes", codes, text, output]
            language = name.rpartition(".")[2]
            purpose = f"Split the words of {language} by them"
            self.step(f"bpe/{name}", purpose, output, *words)

    def held_out(self) -> dict[str, Path]:
        """Prefixes of the common validation and test set."""
        return {split: self.bpe() / split for split in ("valid", "test")}

    def binarise(
        self, folder: Path, purpose: str, texts: dict[str, Path], *words: Any
    ) -> None:
        """fairseq's binary form of some texts, prefixes by their splits."""
        prefixes = [
            word for split, text in texts.items() for word in (f"--{split}pref", text)
        ]
        pair = ["-s", self.source, "-t", self.target, "--destdir", folder]
        words = (*pair, *prefixes, "--workers", 2, *words)
        self.step(folder.name, purpose, folder, "sbnmt", "binarise", *words)

    @exclusive
    def gold_data(self) -> Path:
        """The gold text, binarised; its dictionaries are everyone's."""
        folder = self.work / "data"
        if not self.bench.has(folder):
            purpose = "Binarise the gold text; its dictionaries are everyone's"
            texts = {"train": self.bpe() / "train", **self.held_out()}
            self.binarise(folder, purpose, texts, *self.settings["preprocess"])
        return folder
