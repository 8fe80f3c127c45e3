"""Steps from raw text to the gold data folder."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.settings import device, raw_tokeniser
from sbnmt_plugin.tools.recipes.stages import Settings
from sbnmt_plugin.tools.recipes.step import Step

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Run:
    """A recipe's run, of whose steps the words speak.

    Attributes:
        settings: recipe.yaml's.
        work: folder.
        folder: of the recipe.
        data: the user's raw files, where the recipe wants any.
        processes: trainings and translations of pseudo targets are spread over.
    """

    settings: Settings
    work: Path
    folder: Path = Path()
    data: Path | None = None
    processes: int = 1

    def gpus(self, count: int = 1) -> int:
        """Return how many GPUs a step wants that runs a model: on a CPU, none."""
        return 0 if device(self.settings) else count


class DataSteps:
    """Steps of a run that handle the recipe's own text."""

    def __init__(self, run: Run) -> None:
        self.run, self.work, self.settings = run, run.work, run.settings
        self.languages = (run.settings["source"], run.settings["target"])
        whole = run.settings["bpe"]["kind"] == "none"
        self.pieces = run.work / ("text" if whole else "bpe")  # folder of BPE's text
        self.raw = bool(raw_tokeniser(run.settings))
        self.dictionary = self.pieces / "codes.dict"  # of all pieces of raw text

    @functools.cache
    def text(self) -> Step:
        """Tokenised text, and the test set's references as published."""
        run, folder, wanted = self.run, self.work / "text", self.settings["data"]
        words = ["sbnmt", "prepare", run.folder, "--output", folder]
        words += self.settings["prepare"]
        words += [] if run.data is None else ["--data", run.data]
        purpose = "Tokenise the raw text" if wanted else "Write the text"
        last = folder / f"test.{self.languages[1]}"  # written last
        rule = (
            f"--data must name a folder with {wanted} ({run.folder}), but is not given"
        )
        refusal = rule if wanted and run.data is None else ""
        return Step.of("text", purpose, words, last, refusal=refusal)

    @functools.cache
    def codes(self, *languages: str) -> Step:
        """Byte-pair merges of a language, or merges or pieces of both together."""
        joint = len(languages) > 1
        codes = self.work / "bpe" / ("codes" if joint else f"codes.{languages[0]}")
        words: list[Any] = ["sbnmt", "bpe", "learn"]
        words += ["--kind", "sentencepiece"] if self.raw else []
        words += ["--merges", self.settings["bpe"]["merges"], "--codes", codes]
        words += [self.work / "text" / f"train.{name}" for name in languages]
        learned = "pieces of raw text" if self.raw else "byte-pair merges"
        purpose = f"Learn {learned} of {' and '.join(languages)}"
        done = self.dictionary if self.raw else codes
        return Step.of(
            f"bpe/{codes.name}", purpose, words, codes, self.text(), done=done
        )

    @functools.cache
    def bpe(self) -> tuple[Step, ...]:
        """All texts, split by the merges, or left whole."""
        kind, found = self.settings["bpe"]["kind"], [self.text()]
        for language in self.languages if kind != "none" else ():
            used = (language,) if kind == "separate" else self.languages
            codes = self.codes(*used)
            found += [codes]
            for name in (f"{split}.{language}" for split in SPLITS):
                text, output = self.work / "text" / name, self.pieces / name
                words = ["sbnmt", "bpe", "apply", "--codes", codes, text, output]
                purpose = f"Split the words of {language} by them"
                found += [Step.of(f"bpe/{name}", purpose, words, output)]
        return tuple(found)

    def sides(self, split: str) -> list[Path]:
        """Return the files of a split, source and target, as models read them."""
        return [self.pieces / f"{split}.{language}" for language in self.languages]

    def binarise(
        self,
        name: str,
        purpose: str,
        texts: dict[str, Path],
        options: list[Any],
        *before: Step,
    ) -> Step:
        """Return the step that binarises some texts, prefixes by their splits."""
        folder, (source, target) = self.work / name, self.languages
        words = ["sbnmt", "binarise", "-s", source, "-t", target, "--destdir", folder]
        for split, text in texts.items():
            words += [f"--{split}pref", text]
        words += ["--workers", 2, *options]
        return Step.of(name, purpose, words, folder, *before)

    @functools.cache
    def gold(self) -> Step:
        """The gold text, binarised."""
        purpose = "Binarise the gold text; its dictionaries are everyone's"
        texts = {split: self.pieces / split for split in SPLITS}
        options = list(self.settings["preprocess"])
        if self.raw:
            options += ["--joined-dictionary", "--srcdict", self.dictionary]
        return self.binarise("data", purpose, texts, options, *self.bpe())
