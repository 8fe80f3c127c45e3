"""A model in CTranslate2's form: its search and its scores, without torch."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sbnmt_plugin.symbols import NAMES, SPECIALS, TAGS
from sbnmt_plugin.tools import command

TOKENS = 2048  # of a batch, padding and </s> included
SCORED_ON_CPU = 256  # … of given texts: probabilities of all words stay in its cache
START, PAD, END = SPECIALS
PATIENCE = 2  # a direction goes on until so many times its beam have finished
WORKERS = 2  # a direction each
LARGEST_ALPHA = 10.0  # CTranslate2 divides by L ** α in float32

# subwords in natural order, and the name of the direction that writes or scores them
Stream = tuple[tuple[str, ...], str]


class Converted:
    """A model in CTranslate2's form.

    Args:
        folder: that :func:`conversion.convert` has filled.
        directions: names of those that the model writes.
        device: ``cpu`` or ``cuda``; None: the GPU if there is one.
        compute: CTranslate2's name of the type in which it computes.
        threads: that compute; None: as many as OMP_NUM_THREADS says, or processors.
        workers: parts of a batch that a CPU searches side by side, each on a share of
            the threads: an even number of them, or there is one part.

    Raises:
        ValueError: CTranslate2 is not installed, or cannot do this here.
    """

    def __init__(
        self,
        folder: Path,
        directions: Sequence[str],
        device: str | None = "cpu",
        compute: str = "default",
        threads: int | None = None,
        workers: int = WORKERS,
    ) -> None:
        both = len(directions) == len(NAMES)
        self.starts = dict(zip(NAMES, TAGS)) if both else {directions[0]: END}
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
        asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        linux = hasattr(os, "sched_getaffinity")
        usual = len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1
        threads = threads or (int(asked) if asked.isdecimal() else usual)
        divided = device == "cpu" and threads % workers == 0
        self.workers = workers if divided else 1
        self.folder = folder
        with self.explained():
            self.translator = ctranslate2.Translator(
                str(folder),
                device,
                compute_type=compute,
                inter_threads=self.workers,
                intra_threads=threads // self.workers,
            )

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn an error of CTranslate2's into a ValueError with folder and remedy."""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            reason, remedy = str(error)[:200], "or export the model again"
            remedy = f"take a smaller --beam where memory is short, {remedy}"
            if "libcublas" in reason:
                remedy = "install that library of CUDA, and put it on LD_LIBRARY_PATH"
            raise ValueError(
                f"CTranslate2 fails with {self.folder} ({reason}): {remedy}"
            ) from error

    def search(
        self,
        sources: list[list[str]],
        beam: int,
        alpha: float,
        longest: int,
        shortest: int = 1,
    ) -> list[list[tuple[Stream, float]]]:
        """Search for translations, in all directions in one call.

        Args:
            beam: hypotheses of each direction.
            alpha: α of CTranslate2's length penalty, with which it orders a beam.
            longest, shortest: most and fewest subwords.

        Returns:
            hypotheses of each source with their log-probabilities, perhaps more than
            are asked for; one that has not ended has ``longest`` + 1 subwords.
        """
        each = [(name, place) for name in self.starts for place in range(len(sources))]
        alpha = max(-LARGEST_ALPHA, min(alpha, LARGEST_ALPHA))
        results = self.side_by_side(
            [(sources[place], [self.starts[name]]) for name, place in each],
            beam_size=beam,
            patience=PATIENCE,
            num_hypotheses=beam * PATIENCE if beam > 1 else 1,
            length_penalty=alpha,
            suppress_sequences=[[word] for word in (*TAGS, START, PAD)],
            max_input_length=0,  # else it cuts sources without a word
            max_decoding_length=longest + 1,
            min_decoding_length=shortest,
            return_scores=True,
        )
        found: list[list[tuple[Stream, float]]] = [[] for _ in sources]
        for (name, place), result in zip(each, results):
            found[place] += [
                ((tuple(ordered(words, name)), name), score * (len(words) + 1) ** alpha)
                for words, score in zip(result.hypotheses, result.scores)
            ]
        return found

    def side_by_side(
        self, rows: Sequence[tuple[list[str], list[str]]], **options: Any
    ) -> list[Any]:
        """Search sources with prefixes of their targets, in parts of equal size.

        Parts that each have a thread need not wait for each other, as the threads of
        one part must after every product.

        Args:
            options: of CTranslate2's ``translate_batch``.
        """
        size = -(-len(rows) // self.workers)
        sources, prefixes = map(list, zip(*rows))
        return self.translator.translate_batch(
            sources, prefixes, max_batch_size=size, **options
        )

    def totals(self, pairs: Sequence[tuple[list[str], Stream]]) -> list[float]:
        """Return the log-probability of texts, each with ``</s>``.

        Args:
            pairs: source, and text with the direction that scores it.
        """
        on_cpu = self.translator.device == "cpu"
        scored = self.translator.score_batch(
            [source for source, _ in pairs],
            [[self.starts[name], *ordered(text, name)] for _, (text, name) in pairs],
            max_batch_size=SCORED_ON_CPU if on_cpu else TOKENS,
            batch_type="tokens",
            max_input_length=0,
        )
        return [math.fsum(each.log_probs) for each in scored]


def ordered(text: Sequence[str], direction: str) -> Sequence[str]:
    """Turn a natural text into a direction's order, or back."""
    return text if direction == NAMES[0] else text[::-1]
