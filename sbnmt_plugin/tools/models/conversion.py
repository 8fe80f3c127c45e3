"""Conversion of a trained Transformer for CTranslate2, in one direction or both.

Both directions are one model: the tag with which a stream starts is given as the first
token of a target, and is neither scored nor counted.  Interaction is left out, which
CTranslate2 does not know.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerEncoder, TransformerEncoderBase
from fairseq.modules import SinusoidalPositionalEmbedding

from sbnmt_plugin.layout import NAMES
from sbnmt_plugin.network.decoder import SBTransformerDecoder
from sbnmt_plugin.network.fairseq_decoder import adopt
from sbnmt_plugin.network.fusion import Gate
from sbnmt_plugin.search.options import Symbols
from sbnmt_plugin.search.score_texts import Stream, score_texts
from sbnmt_plugin.search.scorer import text_scorer
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.models.converted import END, Converted

TOLERANCE = 1e-3  # of a text's log-probability, in float32
SEED = 1
LENGTHS = (1, 2, 5, 9, 16, 30)  # words of the sources and of the texts that are tried
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_accurate": "GELUTanh"}


def refuse_unknown(model: Any) -> None:
    """Refuse by name the models that CTranslate2 would compute in another way.

    Raises:
        ValueError: with the family or the flag.
    """
    kind = type(model).__name__
    known = type(model.encoder) in (TransformerEncoder, TransformerEncoderBase)
    if not known or type(adopt(model.decoder)) is not SBTransformerDecoder:
        raise ValueError(
            f"the model must be an SB-NMT model or a Transformer, but is a {kind}, "
            "which CTranslate2 does not know: translate with the folder as it is"
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


def specification(model: Any, source: Dictionary, target: Dictionary) -> Any:
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
    spec.register_source_vocabulary(source.symbols)
    spec.register_target_vocabulary(target.symbols)
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
    model: Any,
    source: Dictionary,
    target: Dictionary,
    directions: tuple[str, ...],
    folder: Path,
    quantization: str | None = None,
) -> None:
    """Write a model in CTranslate2's form, once it is known to compute the same.

    Args:
        model: an SB-NMT model, or a Transformer of one direction; it is not changed.
        directions: names of those that it writes.
        folder: to write to, which exists.
        quantization: CTranslate2's name of the type of its weights; None: float32.

    Raises:
        ValueError: a model that cannot be converted, or whose texts have other
            log-probabilities then.
    """
    spec = specification(model, source, target)
    spec.save(str(folder))
    compare(model, source, target, directions, folder)
    if quantization not in (None, "float32"):
        spec = specification(model, source, target)
        spec.optimize(quantization)
        spec.save(str(folder))


def compare(
    model: Any,
    source: Dictionary,
    target: Dictionary,
    directions: tuple[str, ...],
    folder: Path,
) -> None:
    """Compare the log-probabilities of made-up texts, in every direction.

    Raises:
        ValueError: one differs by more than :data:`TOLERANCE`.
    """
    chance = torch.Generator().manual_seed(SEED)

    def words(dictionary: Dictionary, count: int) -> list[int]:
        last = len(dictionary) - 2  # without the tags
        size = (count,)
        found = torch.randint(dictionary.nspecial, last, size, generator=chance)
        return [*found.tolist(), dictionary.eos()]

    sources = [words(source, n) for n in LENGTHS]
    texts = [words(target, n) for n in reversed(LENGTHS)]
    width = max(map(len, sources))
    rows = [[source.pad()] * (width - len(x)) + x for x in sources]
    lengths = torch.tensor(list(map(len, sources)))
    net_input = {"src_tokens": torch.tensor(rows), "src_lengths": lengths}
    exported = Converted(folder, directions, compute="float32")
    starts = TAGS if len(directions) == len(NAMES) else (END, END)
    symbols = Symbols(
        pad=target.pad(),
        eos=target.eos(),
        unk=target.unk(),
        starts=tuple(map(target.index, starts)),
        never=(),
    )
    streams: list[list[Stream]] = [
        [(tuple(text), NAMES.index(name)) for name in directions] for text in texts
    ]
    model = wide_copy(model)
    with torch.no_grad():
        scorer = text_scorer(model, net_input)
    ours = score_texts([scorer], streams, symbols, torch.device("cpu")).sum(2)
    for place, name in enumerate(directions):
        theirs = exported.totals(
            [
                ([source[i] for i in one[:-1]], [target[i] for i in text[:-1]], name)
                for one, text in zip(sources, texts)
            ]
        )
        worst = max(abs(x - y) for x, y in zip(ours[:, place].tolist(), theirs))
        if not worst <= TOLERANCE:
            raise ValueError(
                f"the exported model must score texts as the model does, but a {name} "
                f"log-probability differs by {worst:.2g}, more than {TOLERANCE}: "
                "translate with the folder as it is"
            )
