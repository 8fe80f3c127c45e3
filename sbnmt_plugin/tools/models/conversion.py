"""Conversion of a trained Transformer for CTranslate2, in one direction or both.

Both directions are one model: the tag with which a stream starts is given as the first
token of a target, and is neither scored nor counted.  Interaction is left out, which
CTranslate2 does not know.
"""

from __future__ import annotations

import copy
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.data import Dictionary, data_utils
from fairseq.models.transformer import TransformerEncoder, TransformerEncoderBase
from fairseq.modules import SinusoidalPositionalEmbedding

from sbnmt_plugin.layout import L2R, NAMES, R2L
from sbnmt_plugin.network.decoder import SBTransformerDecoder
from sbnmt_plugin.network.fairseq_decoder import adopt
from sbnmt_plugin.network.fusion import Gate
from sbnmt_plugin.network.protocol import name_of
from sbnmt_plugin.search.options import Symbols
from sbnmt_plugin.search.score_texts import score_texts
from sbnmt_plugin.search.scorer import Scorer
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.models.converted import WORKERS, Converted
from sbnmt_plugin.tools.models.ctranslate2_engine import CTranslate2Engine

TOLERANCE = 1e-3  # of a text's log-probability, in float32
SEED = 1
LENGTHS = (1, 2, 5, 9, 16, 30)  # words of the sources and of the texts that are tried
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_accurate": "GELUTanh"}


def refuse_unknown(model: Any) -> None:
    """Refuse by name the models that CTranslate2 would compute in another way.

    Raises:
        ValueError: with the family or the flag.
    """
    known = type(model.encoder) in (TransformerEncoder, TransformerEncoderBase)
    if not known or type(adopt(model.decoder)) is not SBTransformerDecoder:
        raise ValueError(
            "the model must be an SB-NMT model or a Transformer, but is "
            f"{name_of(model)}, which CTranslate2 does not know: translate with the "
            "folder as it is"
        )
    sides = model.encoder, model.decoder
    layers = [layer for side in sides for layer in side.layers]
    functions = list(map(utils.get_activation_fn, ACTIVATIONS))
    fusions = [
        getattr(layer.self_attn, "fusion", None) for layer in model.decoder.layers
    ]
    refused = {
        "--sb-fusion gate": any(isinstance(fusion, Gate) for fusion in fusions),
        "--decoder-output-dim": model.decoder.project_out_dim is not None,
        "--quant-noise-pq": any(side.quant_noise is not None for side in sides),
        "--no-token-positional-embeddings": any(
            side.embed_positions is None for side in sides
        ),
        f"--activation-fn other than {', '.join(ACTIVATIONS)}": any(
            layer.activation_fn not in functions for layer in layers
        ),
    }
    for flag, found in refused.items():
        if found:
            raise ValueError(
                f"a model with {flag} must not be exported, since CTranslate2 computes "
                "it in another way: translate with the folder as it is"
            )


def specification(model: Any) -> Any:
    """Return a copy of a model in CTranslate2's form.

    Raises:
        ValueError: see :func:`refuse_unknown`.
    """
    with command.extra("export"):
        from ctranslate2.converters import fairseq as converter
        from ctranslate2.specs import common_spec
        from ctranslate2.specs import transformer_spec as specs

    refuse_unknown(model)
    model = wide_copy(model)
    names = {utils.get_activation_fn(x): name for x, name in ACTIVATIONS.items()}
    parts = []
    for side, kind in (
        (model.encoder, specs.TransformerEncoderSpec),
        (model.decoder, specs.TransformerDecoderSpec),
    ):
        place = side.embed_positions
        if isinstance(place, SinusoidalPositionalEmbedding):  # has 1,024 at first
            pad, last = place.padding_idx, side.max_positions()
            size = last + pad + 1, place.embedding_dim
            place.weights = place.get_embedding(*size, pad)
        layer = side.layers[0]
        part = kind(
            len(side.layers),
            layer.self_attn.num_heads,
            pre_norm=layer.normalize_before,
            no_final_norm=side.layer_norm is None,
            activation=getattr(common_spec.Activation, names[layer.activation_fn]),
            layernorm_embedding=side.layernorm_embedding is not None,
        )
        parts.append(part)
    spec = specs.TransformerSpec(*parts)
    converter.set_transformer_encoder(spec.encoder, model.encoder)
    converter.set_transformer_decoder(spec.decoder, model.decoder)
    # not by the converter's names, which make padding of the word <blank>
    spec.register_source_vocabulary(model.encoder.dictionary.symbols)
    spec.register_target_vocabulary(model.decoder.dictionary.symbols)
    spec.config.decoder_start_token = None
    spec.config.add_source_eos = True
    spec.validate()
    return spec


def wide_copy(model: Any) -> Any:
    """Return a copy of a model in float32 on the CPU, which is not trained."""
    made = copy.deepcopy(model).cpu().float().requires_grad_(False)
    made.eval()  # returns nothing once fairseq has prepared the model for inference
    return made


def convert(
    model: Any, directions: tuple[str, ...], folder: Path, quantization: str = "float32"
) -> None:
    """Write a model in CTranslate2's form, once it is known to compute the same.

    Args:
        model: an SB-NMT model, or a Transformer of one direction; it is not changed.
        directions: names of those that it writes.
        folder: to write to, which exists.
        quantization: CTranslate2's name of the type of its weights.

    Raises:
        ValueError: a model that cannot be converted, or whose texts have other
            log-probabilities then.
    """
    spec = specification(model)
    spec.save(str(folder))
    compare(model, directions, folder)
    if quantization != "float32":
        spec.optimize(quantization)
        spec.save(str(folder))


def compare(model: Any, directions: tuple[str, ...], folder: Path) -> None:
    """Compare the log-probabilities of made-up texts, in every direction.

    Raises:
        ValueError: one differs by more than :data:`TOLERANCE`.
    """
    chance = torch.Generator().manual_seed(SEED)
    source, target = model.encoder.dictionary, model.decoder.dictionary

    def made_up(dictionary: Dictionary, count: int) -> list[int]:
        first, last = dictionary.nspecial, len(dictionary) - len(TAGS)
        found = torch.randint(first, last, (count,), generator=chance)
        return [*found.tolist(), dictionary.eos()]

    most = min(model.max_positions()) - 1
    lengths = [min(count, most) for count in LENGTHS]
    sources = [made_up(source, count) for count in lengths]
    texts = [tuple(made_up(target, count)) for count in reversed(lengths)]
    rows = list(map(torch.tensor, sources))
    tokens = data_utils.collate_tokens(rows, source.pad(), left_pad=True)
    net_input = {
        "src_tokens": tokens,
        "src_lengths": torch.tensor(list(map(len, rows))),
    }
    symbols = Symbols.of(target, (L2R, R2L))
    if len(directions) == 1:  # a teacher's start is </s>
        symbols = replace(symbols, starts=(symbols.eos, symbols.eos))
    streams = [[(text, NAMES.index(name)) for name in directions] for text in texts]
    with torch.no_grad():
        scorer = Scorer.encode(wide_copy(model), net_input)
    ours = score_texts([scorer], streams, symbols, torch.device("cpu")).sum(2)
    pairs = [
        ([source[i] for i in one[:-1]], (tuple(target[i] for i in text[:-1]), name))
        for one, text in zip(sources, texts)
        for name in directions
    ]
    theirs = Converted(folder, directions, compute="float32").totals(pairs)
    worst = (ours.flatten() - torch.tensor(theirs, dtype=ours.dtype)).abs().max()
    if not worst <= TOLERANCE:
        raise ValueError(
            "the exported model must score texts as the model does, but a "
            f"log-probability differs by {float(worst):.2g}, more than {TOLERANCE}: "
            "translate with the folder as it is"
        )


class ConvertedSearch:
    """Search of a converted model, as fairseq's commands call theirs.

    Args:
        model: that is converted, without its interaction.
        directions: names of those that it writes.
        search: options: see :class:`ctranslate2_engine.CTranslate2Engine`; the
            positions are those of the model.
        device, compute, workers: see :class:`converted.Converted`.
    """

    def __init__(
        self,
        model: Any,
        directions: tuple[str, ...],
        search: dict[str, Any],
        device: str,
        compute: str = "default",
        workers: int = WORKERS,
    ) -> None:
        self.source, self.target = model.encoder.dictionary, model.decoder.dictionary
        threads = torch.get_num_threads()
        with tempfile.TemporaryDirectory() as name:
            convert(model, directions, Path(name))
            how = device, compute, threads, workers
            converted = Converted(Path(name), directions, *how)
        search = {**search, "max_positions": model.max_decoder_positions()}
        self.engine = CTranslate2Engine(converted, search, 1)

    def generate(
        self, models: Any, sample: dict[str, Any], **_: Any
    ) -> list[list[dict[str, Any]]]:
        """Translate a batch: see :meth:`registry.Search.generate`.

        Raises:
            FloatingPointError: the model gives no finite score.
            ValueError: CTranslate2 fails.
        """
        with self.engine.model.explained():
            answers = self.engine.search(self.sources(sample))
        if not all(answers):
            raise FloatingPointError("the model gives no finite score")
        return [
            [{"tokens": self.ids(x[0]), "score": torch.tensor(s)} for x, s in own]
            for own in answers
        ]

    def sources(self, sample: dict[str, Any]) -> list[list[str]]:
        """Return the subwords of a batch's sources."""
        left_out = self.source.pad(), self.source.eos()
        rows = sample["net_input"]["src_tokens"].tolist()
        return [[self.source[i] for i in row if i not in left_out] for row in rows]

    def ids(self, text: tuple[str, ...]) -> torch.Tensor:
        """Return the numbers of subwords, and of the end."""
        return torch.tensor([*map(self.target.index, text), self.target.eos()])
