"""A model in CTranslate2's form: its sizes, its search and its scores; no torch."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from sbnmt_plugin.symbols import NAMES, SPECIALS, TAGS, UNKNOWN
from sbnmt_plugin.tools import command

FILE = "model.bin"
TOKENS = 2048  # of a batch, padding and </s> included
PAD, END = SPECIALS[1:]
PATIENCE = 2  # a direction goes on until so many times its beam have finished
LARGEST_ALPHA = 10.0  # CTranslate2 divides by L ** α in float32
EMBEDDINGS = {"source": "encoder/embeddings_0", "target": "decoder/embeddings"}


class Found(NamedTuple):
    """A finished hypothesis.

    Attributes:
        text: its subwords, in natural order.
        total: log-probability, ``</s>`` included.
        direction: name of the one that has written it.
    """

    text: tuple[str, ...]
    total: float
    direction: str


class Converted:
    """A model in CTranslate2's form.

    Args:
        folder: that :func:`conversion.convert` has filled.
        directions: names of those that the model writes.
        device: ``cpu`` or ``cuda``; None: the GPU if there is one.
        compute: CTranslate2's name of the type in which it computes.
        threads: that compute; None: as many as OMP_NUM_THREADS says, or processors.

    Raises:
        ValueError: CTranslate2 is not installed, or does not take this type here; the
            model and its vocabulary do not fit.

    Attributes:
        positions: most tokens of a source, and of a target.
    """

    def __init__(
        self,
        folder: Path,
        directions: Sequence[str],
        device: str | None = "cpu",
        compute: str = "default",
        threads: int | None = None,
    ) -> None:
        both = len(directions) == len(NAMES)
        self.starts = dict(zip(NAMES, TAGS)) if both else {directions[0]: END}
        sizes = shapes(folder / FILE)
        sides = "encoder", "decoder"
        encodings = (sizes[f"{x}/position_encodings/encodings"] for x in sides)
        self.positions = tuple(shape[0] for shape in encodings)
        for side, words in vocabularies(folder).items():
            rows, missing = sizes[f"{EMBEDDINGS[side]}/weight"][0], {*TAGS} - {*words}
            if len(words) != rows or missing:
                raise ValueError(
                    f"{folder}: the {side} vocabulary must have {rows} words, {TAGS} "
                    f"among them, but has {len(words)}: export the model again"
                )
        # threads that wait actively take the processor from those that compute
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        with command.extra("export"):
            import ctranslate2

        has_gpu = ctranslate2.get_cuda_device_count() > 0
        device = device or ("cuda" if has_gpu else "cpu")
        if device == "cuda" and not has_gpu:
            raise ValueError("device must be cpu here, where CTranslate2 sees no GPU")
        if device == "cpu" and compute in ("bfloat16", "float16"):
            raise ValueError(
                "dtype must be float32 or int8 for an exported model on a CPU, which "
                f"does not compute in {compute}"
            )
        usual = os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0)))
        self.translator = ctranslate2.Translator(
            str(folder),
            device,
            compute_type=compute,
            intra_threads=threads or int(usual),
        )

    def search(
        self,
        sources: list[list[str]],
        beam: int,
        alpha: float,
        longest: int,
        shortest: int = 1,
    ) -> list[list[Found]]:
        """Search for translations, in all directions in one call.

        Args:
            beam: hypotheses of each direction.
            alpha: α of CTranslate2's length penalty, with which it orders a beam.
            longest, shortest: most and fewest subwords.

        Returns:
            hypotheses of each source, perhaps more than are asked for; one that has not
            ended has ``longest`` + 1 subwords.
        """
        each = [(name, start) for name, start in self.starts.items() for _ in sources]
        alpha = min(alpha, LARGEST_ALPHA)
        results = self.translator.translate_batch(
            sources * len(self.starts),
            [[start] for _, start in each],
            beam_size=beam,
            patience=PATIENCE,
            num_hypotheses=beam * PATIENCE if beam > 1 else 1,
            length_penalty=alpha,
            suppress_sequences=[[word] for word in (*TAGS, PAD)],
            max_input_length=0,  # else it cuts sources without a word
            max_decoding_length=longest + 1,
            min_decoding_length=shortest,
            return_scores=True,
        )
        found: list[list[Found]] = [[] for _ in sources]
        for place, ((name, _), result) in enumerate(zip(each, results)):
            for words, score in zip(result.hypotheses, result.scores):
                total = score * (len(words) + 1) ** alpha
                one = Found(tuple(ordered(words, name)), total, name)
                found[place % len(sources)].append(one)
        return found

    def totals(
        self, pairs: Sequence[tuple[list[str], Sequence[str], str]]
    ) -> list[float]:
        """Return the log-probability of texts, each with ``</s>``.

        Args:
            pairs: source, text in natural order, and name of the direction.
        """
        scored = self.translator.score_batch(
            [source for source, _, _ in pairs],
            [[self.starts[name], *ordered(text, name)] for _, text, name in pairs],
            max_batch_size=TOKENS,
            batch_type="tokens",
            max_input_length=0,
        )
        return [math.fsum(each.log_probs) for each in scored]


def ordered(text: Sequence[str], direction: str) -> Sequence[str]:
    """Turn a natural text into a direction's order, or back."""
    return text if direction == NAMES[0] else text[::-1]


def vocabularies(folder: Path) -> dict[str, list[str]]:
    """Return the words that a model reads and writes, by the names of its sides."""
    shared = folder / "shared_vocabulary.json"
    paths = {side: folder / f"{side}_vocabulary.json" for side in EMBEDDINGS}
    chosen = {x: shared if shared.exists() else path for x, path in paths.items()}
    return {x: json.loads(path.read_text("utf-8")) for x, path in chosen.items()}


def words_of(dictionary: Path) -> list[str]:
    """Return the words of a fairseq dictionary with this package's tags, by number."""
    lines = dictionary.read_text("utf-8").rstrip("\n").split("\n")
    return [*SPECIALS, UNKNOWN, *(line.split(" ")[0] for line in lines), *TAGS]


def shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights of a model: see ``ModelSpec._serialize``.

    Raises:
        ValueError: the file is damaged.
    """
    found: dict[str, tuple[int, ...]] = {}
    try:
        with open(path, "rb") as file:
            number(file, "I"), text(file), number(file, "I")  # versions, and the kind
            for _ in range(number(file, "I")):
                name = text(file)
                found[name] = tuple(number(file, "I") for _ in range(number(file, "B")))
                number(file, "B")  # type
                file.seek(number(file, "I"), os.SEEK_CUR)
            for _ in range(number(file, "I")):
                alias, name = text(file), text(file)
                found[alias] = found[name]
    except (struct.error, UnicodeDecodeError, KeyError) as error:
        raise ValueError(f"{path} must be a model of CTranslate2, but is no") from error
    return found


def number(file: IO[bytes], kind: str) -> Any:
    """Read a number, by the letter that struct has for its type."""
    return struct.unpack(f"<{kind}", file.read(struct.calcsize(f"<{kind}")))[0]


def text(file: IO[bytes]) -> str:
    """Read a text that a 0 ends."""
    return file.read(number(file, "H"))[:-1].decode("utf-8")
