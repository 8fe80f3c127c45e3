"""The systems that are compared, each behind one call: translate a batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.sequence_generator import SequenceGenerator

from sbnmt_plugin.layout import L2R, NAMES, R2L
from sbnmt_plugin.network.cpu_products import for_decoding
from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.penalties import LengthPenalty
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.tools.benchmark.cases import Case
from sbnmt_plugin.tools.benchmark.converted import CTranslate2, Exported
from sbnmt_plugin.tools.benchmark.models import ALONE, Batch, Search, Spec, load


class Fairseq:
    """fairseq's own beam search with its own Transformer.

    Args:
        dtype: of the weights, by torch's name.
        kind: of the model, see :func:`models.load`.
    """

    def __init__(self, spec: Spec, dtype: str, kind: str = NAMES[L2R]) -> None:
        self.loaded = load(spec, kind)
        model = self.loaded.model.to(getattr(torch, dtype)).eval()
        model.prepare_for_inference_(FairseqConfig())  # as fairseq-generate does

    def generator(self, case: Case) -> Any:
        """Return what translates a batch into lists of hypotheses."""
        words = self.loaded.words
        return SequenceGenerator(
            [self.loaded.model],
            words,
            beam_size=case.beam,
            len_penalty=case.alpha,
            tokens_to_suppress=(),
            symbols_to_strip_from_output={words.index(tag) for tag in TAGS},
            **case.limits,
        )

    def search(self, case: Case) -> Search:
        generator, models = self.generator(case), [self.loaded.model]

        def best(sample: Batch) -> list[list[int]]:
            found = generator.generate(models, sample)
            return [answers[0]["tokens"].tolist() for answers in found]

        return best


class Ours(Fairseq):
    """A model in the search of this package: in both directions, or in its only one.

    Args:
        rescore: the weight of ``--sb-rescore``, which does not matter for its speed.
        best: ``--sb-rescore-best``, how many texts are rescored; 0: all.
    """

    def __init__(
        self,
        spec: Spec,
        dtype: str,
        kind: str = "both",
        rescore: float = 0.0,
        best: int = 0,
    ) -> None:
        super().__init__(spec, "float32" if dtype == "int8" else dtype, kind)
        self.directions = (NAMES.index(kind),) if kind in NAMES else (L2R, R2L)
        self.rescore, self.best = rescore, best
        # --sb-bf16, --sb-int8
        for_decoding(self.loaded.model, dtype == "bfloat16", dtype == "int8")

    def generator(self, case: Case) -> Any:
        options = SearchOptions(
            beam=case.beam,
            directions=self.directions,
            penalty=LengthPenalty("gnmt", case.alpha),
            rescore=self.rescore,
            rescore_best=self.best,
            nbest=1,
            **case.limits,
        )
        symbols = Symbols.of(self.loaded.words, self.directions)
        return Generator([self.loaded.model], symbols, options)


# each has `loaded`, its model and dictionaries, and `search`, which returns a search of
# a case's beam and lengths
SYSTEMS: dict[str, Callable[[Spec, str], Any]] = {
    "fairseq": Fairseq,
    "SB-NMT": Ours,
    "SB-NMT rescored": partial(Ours, rescore=1.0),
    "Transformer in our search": partial(Ours, kind=NAMES[L2R]),
    "CTranslate2": CTranslate2,
    "SB-NMT λ=0": partial(Ours, kind=ALONE),
    "SB-NMT λ=0 rescored": partial(Ours, kind=ALONE, rescore=1.0),
    "SB-NMT best 2 rescored": partial(Ours, rescore=1.0, best=2),
    "SB-NMT λ=0 best 2 rescored": partial(Ours, kind=ALONE, rescore=1.0, best=2),
    "SB-NMT exported": partial(Exported, kind=ALONE),
    "SB-NMT exported rescored": partial(Exported, kind=ALONE, rescore=1.0),
}
CONVERTED = ("CTranslate2", "SB-NMT exported", "SB-NMT exported rescored")


def kinds(names: Iterable[str]) -> list[str]:
    """Return the kinds of models that systems use: see :func:`models.load`."""
    taken = [inspect.signature(SYSTEMS[name]).parameters for name in names]
    found = [own["kind"].default if "kind" in own else NAMES[L2R] for own in taken]
    return list(dict.fromkeys(found))


def pairs(low: str) -> list[tuple[str, str]]:
    """Return systems and the types of their weights, fairseq's in float32 first.

    On a CPU SB-NMT in 8 bits as well, and CTranslate2's, which has no other small type
    there.
    """
    found = [(name, "float32") for name in SYSTEMS]
    narrow = "fairseq", "SB-NMT", "SB-NMT λ=0 rescored", "SB-NMT λ=0 best 2 rescored"
    found += [(name, low) for name in (*narrow, "Transformer in our search")]
    small = low
    if low == "bfloat16":
        found, small = [*found, ("SB-NMT", "int8")], "int8"
    return found + [(name, small) for name in CONVERTED]
