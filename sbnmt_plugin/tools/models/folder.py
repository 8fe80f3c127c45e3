"""A model folder, loaded to translate raw text."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sbnmt_plugin.symbols import RESERVED
from sbnmt_plugin.tools.models.description import (
    Description,
    Range,
    check,
    read_description,
)
from sbnmt_plugin.tools.models.engine import Engine, Hypothesis, check_beam, distinct

DTYPES = "float32", "bf16", "fp16", "int8"
DEVICES = "cpu", "cuda"


class Model:
    """A model that translates raw text: see :func:`load`.

    Args:
        folder: model folder.
        description: that of the folder, with the caller's options of the search.
        engine: translates subwords.
        nbest: most hypotheses of a line, of different texts; None: all that the engine
            gives.
    """

    def __init__(
        self,
        folder: Path,
        description: Description,
        engine: Engine,
        nbest: int | None = None,
    ) -> None:
        self.description = description
        self.engine = engine
        self.nbest = nbest
        self.loaded_as: tuple[Any, ...] = (folder,)
        self.encode, _ = description.source.coders(folder)
        _, self.decode = description.target.coders(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, perhaps in another process, is loaded anew from the folder."""
        return load, self.loaded_as

    def translate(self, lines: Iterable[str]) -> list[str]:
        """Translate lines of raw text; an empty line gives an empty line.

        Raises:
            ValueError: something else than a list of lines; a line cannot be
                translated, with its number from 1.
        """
        found = []
        for number, hypotheses in enumerate(self.hypotheses(lines), start=1):
            if isinstance(hypotheses, str):
                raise ValueError(f"line {number} cannot be translated: {hypotheses}")
            found.append(hypotheses[0].tokens if hypotheses else "")
        return found

    def hypotheses(self, lines: Iterable[str]) -> list[list[Hypothesis] | str]:
        """Translate lines of raw text.

        Returns:
            For each line its hypotheses as raw text, best first, none for an empty
            line; or the reason for which it has none.

        Raises:
            ValueError: something else than a list of lines.
        """
        given = list(lines) if isinstance(lines, Iterable) else [lines]
        if isinstance(lines, str) or not all(isinstance(x, str) for x in given):
            raise ValueError(
                f"lines must be a list of texts, but is {lines!r:.80}: give [text]"
            )
        found: list[list[Hypothesis] | str] = [[] for _ in given]
        sources: dict[int, str] = {}
        for place, line in enumerate(given):
            try:
                if source := self.source(line):
                    sources[place] = source
            except ValueError as error:
                found[place] = str(error)
        answers = self.engine.hypotheses(list(sources.values())) if sources else []
        for place, answer in zip(sources, answers):
            found[place] = answer
            if not isinstance(answer, str):
                texts = [x._replace(tokens=self.decode(x.tokens)) for x in answer]
                nbest = self.nbest
                found[place] = texts if nbest is None else distinct(texts, nbest)
        return found

    def source(self, line: str) -> str:
        """Return the subwords of a line, "" for white space alone.

        Raises:
            ValueError: the line cannot be translated; the message is the reason.
        """
        line.encode()  # half a letter, which no file can hold, is refused
        tokens = self.encode(line).split()
        most = self.description.search["max_positions"]
        if len(tokens) >= most:  # </s> is one more
            raise ValueError(f"{len(tokens) + 1} tokens, at most {most} are allowed")
        if reserved := sorted(set(RESERVED).intersection(tokens)):
            raise ValueError(f"{reserved[0]} is a reserved symbol")
        return " ".join(tokens)


def load(
    path: str | os.PathLike[str],
    device: str | None = None,
    dtype: str = "float32",
    beam: int | None = None,
    lenpen: float | None = None,
    rescore: float | None = None,
    nbest: int | None = 1,
) -> Model:
    """Load a model folder.

    Args:
        path: folder that ``sbnmt bundle``, ``sbnmt export`` or a recipe has made.
        device: one of :data:`DEVICES`; None: the GPU if there is one.
        dtype: one of :data:`DTYPES`, the numbers in which the model computes; float32
            also stands for those in which an exported model was written.
        beam, lenpen, rescore: options of the search in place of the folder's.
        nbest: number of hypotheses of a line, of different texts; None: all of the
            beam, where both directions may have the same text.

    Raises:
        FileNotFoundError: the folder or one of its files is missing.
        ValueError: an option has a wrong value; a file of the folder was changed.
    """
    check(device or DEVICES[0], DEVICES, "device")
    check(dtype, DTYPES, "dtype")
    folder = Path(path)
    given = {"beam": beam, "lenpen": lenpen, "rescore": rescore}
    description = read_description(folder).with_search(given)
    if description.search["rescore"] and len(description.directions) == 1:
        raise ValueError(
            "--rescore must be 0 for a model of one direction, which has no score in "
            f"the other, but is {description.search['rescore']}"
        )
    opening = folder, description, device, dtype, 1 if nbest == 1 else None
    engine: Engine
    if description.engine == "ctranslate2":
        from sbnmt_plugin.tools.models import ctranslate2_engine

        engine = ctranslate2_engine.open_engine(*opening)
    elif not importlib.util.find_spec("fairseq"):
        raise ValueError(
            f"{folder} needs fairseq, which is not installed: install the plugin with "
            "what it depends on, or translate with a folder that sbnmt export has made"
        )
    else:
        from sbnmt_plugin.tools.models import fairseq_engine

        engine = fairseq_engine.open_engine(*opening)
    check_beam(engine, beam or 1)
    most = engine.most
    check(most if nbest is None else nbest, Range(int, 1, most), "--nbest")
    model = Model(folder, description, engine, nbest)
    model.loaded_as = path, device, dtype, beam, lenpen, rescore, nbest
    return model
