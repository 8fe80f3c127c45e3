"""The systems that are compared, each behind one call: translate these batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from fairseq.sequence_generator import SequenceGenerator
from omegaconf import OmegaConf

from sbnmt_plugin.families.abd.search import AsynchronousGenerator
from sbnmt_plugin.layout import L2R, NAMES, R2L
from sbnmt_plugin.network.cpu_products import for_decoding
from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.penalties import Gnmt
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.tools.benchmark.converted import CTranslate2Model
from sbnmt_plugin.tools.benchmark.models import Loaded, Spec, load
from sbnmt_plugin.tools.reranking import sum_of_both, unite

ALPHA = 0.6  # of the length penalty with trained weights; else lengths are forced
MAX_LEN = {"max_len_a": 1.0, "max_len_b": 50}  # tokens, with trained weights

Batch = dict[str, Any]
Text = tuple[int, list[int]]  # number of a sentence, tokens with </s>


@dataclass(frozen=True)
class Setting:
    """Options of a search.

    Attributes:
        beam: hypotheses a sentence, of both directions together.
        length: tokens that every hypothesis must have, or None where it may stop
            when it likes (trained weights).
    """

    beam: int = 4
    length: int | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """Return fairseq's options of length."""
        if self.length is None:
            return dict(MAX_LEN)
        return {"min_len": self.length, "max_len_a": 0, "max_len_b": self.length}


class System:
    """A system: makes a search for a setting, and translates by it.

    Attributes:
        loaded: its model and dictionaries.
    """

    loaded: Loaded

    def searcher(self, setting: Setting) -> Any:
        """Return a search for the setting."""
        raise NotImplementedError

    def best(self, searcher: Any, sample: Batch) -> Iterable[list[int]]:
        """Return the best hypotheses of a batch, in its order."""
        raise NotImplementedError

    def translate(self, searcher: Any, batches: Iterable[Batch]) -> list[Text]:
        """Return the best hypothesis of every sentence."""
        return [
            text
            for sample in batches
            for text in zip(sample["id"].tolist(), self.best(searcher, sample))
        ]


class Fairseq(System):
    """fairseq's own beam search with its own Transformer.

    Args:
        dtype: of the weights, by torch's name.
        kind: of the model, see :func:`models.load`.
    """

    def __init__(self, spec: Spec, dtype: str, kind: str = NAMES[L2R]) -> None:
        self.loaded = load(spec, kind)
        self.loaded.model.to(getattr(torch, dtype)).eval()
        self.prepared = False

    def searcher(self, setting: Setting) -> Any:
        if not self.prepared:
            self.prepared = True  # as fairseq-generate prepares it
            generation = {"beam": setting.beam, "print_alignment": None}
            cfg = OmegaConf.create({"generation": generation})
            self.loaded.model.prepare_for_inference_(cfg)
        return self.build(setting)

    def build(self, setting: Setting) -> Any:
        """Return the search itself."""
        words = self.loaded.words
        return SequenceGenerator(
            [self.loaded.model],
            words,
            beam_size=setting.beam,
            len_penalty=ALPHA,
            tokens_to_suppress=(),
            symbols_to_strip_from_output={words.index(tag) for tag in TAGS},
            **setting.limits,
        )

    def best(self, searcher: Any, sample: Batch) -> Iterable[list[int]]:
        found = searcher.generate([self.loaded.model], sample)
        return [answers[0]["tokens"].tolist() for answers in found]


class Ours(Fairseq):
    """A model in the search of this package: in both directions, or in its only one.

    Args:
        rescore: the weight of ``--sb-rescore``, which does not matter for its speed.
        search: that the model needs.
    """

    def __init__(
        self,
        spec: Spec,
        dtype: str,
        kind: str = "both",
        rescore: float = 0.0,
        search: type[Any] = Generator,
    ) -> None:
        super().__init__(spec, "float32" if dtype == "int8" else dtype, kind)
        self.directions = (NAMES.index(kind),) if kind in NAMES else (L2R, R2L)
        self.rescore, self.search = rescore, search
        # --sb-bf16, --sb-int8
        for_decoding(self.loaded.model, dtype == "bfloat16", dtype == "int8")

    def build(self, setting: Setting) -> Any:
        words = self.loaded.words
        tags = tuple(words.index(tag) for tag in TAGS)
        options = SearchOptions(
            beam=setting.beam,
            directions=self.directions,
            penalty=Gnmt(ALPHA),
            rescore=self.rescore,
            nbest=1,
            **setting.limits,
        )
        symbols = Symbols(
            pad=words.pad(),
            eos=words.eos(),
            unk=words.unk(),
            starts=tags if len(self.directions) == 2 else (words.eos(),),
            never=(words.pad(), *tags),
        )
        return self.search([self.loaded.model], symbols, options)


class Rerank(System):
    """Both teachers' k best hypotheses, scored by both: see ``sbnmt rerank``."""

    def __init__(self, spec: Spec, dtype: str) -> None:
        self.systems = [Ours(spec, dtype, kind=name) for name in NAMES]
        self.loaded = self.systems[L2R].loaded

    def searcher(self, setting: Setting) -> Any:
        return [system.searcher(setting) for system in self.systems]

    def best(self, searcher: Any, sample: Batch) -> Iterable[list[int]]:
        lists = [search.generate(search.models, sample) for search in searcher]
        candidates = [unite(*pair) for pair in zip(*lists)]
        parts = sum_of_both(searcher, sample["net_input"], candidates)
        for found, scores in zip(candidates, parts):
            best = int(scores[: len(found)].argmax())
            yield [*found[best], self.loaded.words.eos()]


class CTranslate2(System):
    """The same Transformer, converted: a user's choice for speed alone."""

    def __init__(self, spec: Spec, dtype: str) -> None:
        self.loaded = load(spec, NAMES[L2R])
        self.converted = CTranslate2Model(self.loaded, spec.device, dtype)
        self.loaded.model = None  # its memory is not CTranslate2's

    def searcher(self, setting: Setting) -> Any:
        return setting

    def best(self, searcher: Setting, sample: Batch) -> Iterable[list[int]]:
        source = sample["net_input"]["src_tokens"]
        longest = source.size(1) + int(MAX_LEN["max_len_b"])
        return self.converted.translate(
            source,
            beam_size=searcher.beam,
            length_penalty=ALPHA,
            min_decoding_length=searcher.length or 1,
            max_decoding_length=searcher.length or longest,
        )


SYSTEMS: dict[str, Callable[[Spec, str], System]] = {
    "fairseq": Fairseq,
    "SB-NMT": Ours,
    "SB-NMT rescored": partial(Ours, rescore=1.0),
    "Transformer in our search": partial(Ours, kind=NAMES[L2R]),
    "CTranslate2": CTranslate2,
    "Rerank-NMT": Rerank,
    # the backward decoder's search, then the forward one's, k hypotheses each
    "ABD-NMT": partial(Ours, kind="abd", search=AsynchronousGenerator),
}


def pairs(low: str) -> list[tuple[str, str]]:
    """Return systems and the types of their weights, fairseq's in float32 first.

    On a CPU SB-NMT in 8 bits as well, and CTranslate2, which has no other small type
    there.
    """
    found = [(name, "float32") for name in SYSTEMS]
    found += [("fairseq", low), ("SB-NMT", low), ("Transformer in our search", low)]
    if low != "bfloat16":
        return [*found, ("CTranslate2", low)]
    return [*found, ("SB-NMT", "int8"), ("CTranslate2", "int8")]
