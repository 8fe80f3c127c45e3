"""The systems that are compared, each behind one call: translate these batches."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.sequence_generator import SequenceGenerator
from omegaconf import OmegaConf
from torch.utils._python_dispatch import TorchDispatchMode

from sbnmt_plugin.families.abd.search import AsynchronousGenerator
from sbnmt_plugin.layout import L2R, NAMES, R2L
from sbnmt_plugin.network.cpu_products import for_decoding
from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.penalties import Gnmt
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.benchmark.models import Loaded, Spec, load, source_rows
from sbnmt_plugin.tools.reranking import sum_of_both, unite

ALPHA = 0.6  # of the length penalty with trained weights; lengths are forced else
MAX_LEN = {"max_len_a": 1.0, "max_len_b": 50}  # tokens, with trained weights

Batch = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What is asked of a search.

    Attributes:
        beam: hypotheses a sentence, of both directions together.
        length: tokens that every hypothesis must have, or None where it may stop
            when it likes (trained weights).
    """

    beam: int = 4
    length: int | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """fairseq's options of length."""
        if self.length is None:
            return dict(MAX_LEN)
        return {"min_len": self.length, "max_len_a": 0, "max_len_b": self.length}


@dataclass
class Work:
    """What a search did: texts where they mean something, and its steps."""

    sentences: int
    tokens: int
    texts: list[tuple[int, list[int]]]


class Fairseq:
    """fairseq's own beam search with its own Transformer."""

    kind = NAMES[L2R]

    def __init__(self, spec: Spec, dtype: str) -> None:
        self.loaded = load(spec, self.kind)
        weights = "float32" if dtype == "int8" else dtype
        self.loaded.model.to(getattr(torch, weights)).eval()
        self.prepared = False

    def searcher(self, setting: Setting) -> Any:
        """A search for the setting, made as fairseq-generate makes it."""
        model = self.loaded.model
        if not self.prepared:
            self.prepared = True
            generation = {"beam": setting.beam, "print_alignment": None}
            model.prepare_for_inference_(OmegaConf.create({"generation": generation}))
        return self.build(self.loaded, setting)

    def build(self, loaded: Loaded, setting: Setting) -> Any:
        never = [loaded.words.index(tag) for tag in TAGS]
        return SequenceGenerator(
            [loaded.model],
            loaded.words,
            beam_size=setting.beam,
            len_penalty=ALPHA,
            tokens_to_suppress=(),
            symbols_to_strip_from_output=set(never),
            **setting.limits,
        )

    def translate(self, searcher: Any, batches: list[Batch]) -> Work:
        """Translate; the best hypothesis of every sentence."""
        work = Work(0, 0, [])
        for sample in batches:
            results = searcher.generate([self.loaded.model], sample)
            for number, answers in zip(sample["id"].tolist(), results):
                tokens = answers[0]["tokens"]
                work.sentences += 1
                work.tokens += len(tokens)
                work.texts.append((number, tokens.tolist()))
        return work


class Synchronous(Fairseq):
    """SB-NMT and its search."""

    kind = "both"
    search: type[Any] = Generator
    directions: tuple[int, ...] = (L2R, R2L)
    rescore = 0.0

    def __init__(self, spec: Spec, dtype: str) -> None:
        super().__init__(spec, dtype)
        # --sb-bf16, --sb-int8
        for_decoding(self.loaded.model, dtype == "bfloat16", dtype == "int8")

    def build(self, loaded: Loaded, setting: Setting) -> Any:
        words = loaded.words
        tags = [words.index(tag) for tag in TAGS]
        both = len(self.directions) == 2
        starts = tags if both else [words.eos()]
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
            starts=tuple(starts),
            never=(words.pad(), *tags),
        )
        return self.search([loaded.model], symbols, options)


class Rescored(Synchronous):
    """The same with ``--sb-rescore``, whose weight does not matter for its speed."""

    rescore = 1.0


class Plain(Synchronous):
    """fairseq's Transformer through our search, in one direction."""

    kind = NAMES[L2R]
    directions = (L2R,)


class Asynchronous(Synchronous):
    """ABD-NMT: the backward decoder's search, then the forward one's, k each."""

    kind = "abd"
    search = AsynchronousGenerator


class Rerank(Plain):
    """Both teachers' k best, scored by both: see ``sbnmt rerank``."""

    def __init__(self, spec: Spec, dtype: str) -> None:
        super().__init__(spec, dtype)
        self.other = Plain.__new__(Plain)
        self.other.kind, self.other.prepared = NAMES[R2L], False
        self.other.directions = (R2L,)
        self.other.loaded = load(spec, NAMES[R2L])
        self.other.loaded.model.to(getattr(torch, dtype)).eval()

    def searcher(self, setting: Setting) -> Any:
        return super().searcher(setting), self.other.searcher(setting)

    def translate(self, searcher: Any, batches: list[Batch]) -> Work:
        work = Work(0, 0, [])
        for sample in batches:
            lists = [search.generate(search.models, sample) for search in searcher]
            candidates = [unite(*pair) for pair in zip(*lists)]
            parts = sum_of_both(searcher, sample["net_input"], candidates)
            for number, found, scores in zip(sample["id"].tolist(), candidates, parts):
                best = int(scores[: len(found)].argmax())
                tokens = [*found[best], self.loaded.words.eos()]
                work.sentences += 1
                work.tokens += len(tokens)
                work.texts.append((number, tokens))
        return work


class CTranslate2(Fairseq):
    """The same Transformer, converted: what a user would take for speed alone."""

    def __init__(self, spec: Spec, dtype: str) -> None:
        with command.extra("benchmark"):
            import ctranslate2

        super().__init__(spec, "float32")
        self.loaded.model.cpu()
        with tempfile.TemporaryDirectory() as folder:
            convert(self.loaded, Path(folder) / "model")
            self.translator = ctranslate2.Translator(
                str(Path(folder) / "model"),
                device=spec.device,
                compute_type=dtype,
                inter_threads=1,
                intra_threads=torch.get_num_threads(),
            )
        source = self.loaded.source
        self.names = ["<blank>" if w == source.pad_word else w for w in source.symbols]
        self.pad = source.pad()
        self.loaded.model = None  # its memory is not CTranslate2's

    def searcher(self, setting: Setting) -> Any:
        return setting

    def translate(self, searcher: Any, batches: list[Batch]) -> Work:
        work = Work(0, 0, [])
        eos = self.loaded.words.eos()
        for sample in batches:
            rows = source_rows(sample, self.pad)
            sources = [[self.names[i] for i in row[:-1].tolist()] for row in rows]
            longest = searcher.length
            if longest is None:
                longest = int(max(map(len, rows)) + MAX_LEN["max_len_b"])
            found = self.translator.translate_batch(
                sources,
                beam_size=searcher.beam,
                length_penalty=ALPHA,
                min_decoding_length=searcher.length or 1,
                max_decoding_length=longest,
                max_input_length=0,
            )
            for number, result in zip(sample["id"].tolist(), found):
                tokens = [self.loaded.words.index(w) for w in result.hypotheses[0]]
                work.sentences += 1
                work.tokens += len(tokens) + 1
                work.texts.append((number, [*tokens, eos]))
        return work


def convert(loaded: Loaded, folder: Path) -> None:
    """Write a Transformer in CTranslate2's form, through its converter's own parts."""
    from ctranslate2.converters import fairseq as converter
    from ctranslate2.specs import common_spec, transformer_spec

    model = loaded.model.requires_grad_(False)
    layer = model.encoder.layers[0]
    if layer.activation_fn is not torch.nn.functional.relu:
        raise ValueError("the benchmark converts models with --activation-fn relu only")
    spec = transformer_spec.TransformerSpec.from_config(
        (len(model.encoder.layers), len(model.decoder.layers)),
        layer.self_attn.num_heads,
        pre_norm=layer.normalize_before,
        activation=common_spec.Activation.RELU,
    )
    converter.set_transformer_encoder(spec.encoder, model.encoder)
    converter.set_transformer_decoder(spec.decoder, model.decoder)
    spec.register_source_vocabulary(converter._get_vocab(loaded.source))
    spec.register_target_vocabulary(converter._get_vocab(loaded.words))
    spec.config.decoder_start_token = spec.config.eos_token
    spec.config.add_source_eos = True
    spec.validate()
    folder.mkdir()
    spec.save(str(folder))


SYSTEMS: dict[str, Callable[[Spec, str], Fairseq]] = {
    "fairseq": Fairseq,
    "SB-NMT": Synchronous,
    "SB-NMT rescored": Rescored,
    "Transformer in our search": Plain,
    "CTranslate2": CTranslate2,
    "Rerank-NMT": Rerank,
    "ABD-NMT": Asynchronous,
}


def pairs(low: str) -> list[tuple[str, str]]:
    """Systems and the types of their numbers, fairseq's in float32 first.

    On a CPU SB-NMT in 8 bits as well, and CTranslate2, which has no other small type
    there.
    """
    found = [(name, "float32") for name in SYSTEMS]
    found += [("fairseq", low), ("SB-NMT", low), ("Transformer in our search", low)]
    if low != "bfloat16":
        return [*found, ("CTranslate2", low)]
    return [*found, ("SB-NMT", "int8"), ("CTranslate2", "int8")]


class Counts(TorchDispatchMode):
    """Counts a decoder's steps, and the operators of all that runs meanwhile.

    Args:
        model: whose decoder's last layer runs once a step.

    Attributes:
        steps: of the search.
        operators: that compute or copy; views cost next to nothing.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.steps = self.operators = 0
        self.layer = model.decoder.layers[-1]

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.operators += not function.is_view
        return function(*args, **(kwargs or {}))

    def __enter__(self) -> Counts:
        self.handle = self.layer.register_forward_hook(self._note)
        super().__enter__()
        return self

    def __exit__(self, *reason: Any) -> None:
        super().__exit__(*reason)
        self.handle.remove()

    def _note(self, *_: Any) -> None:
        self.steps += 1
