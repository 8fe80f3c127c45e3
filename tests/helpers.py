"""Tiny models and batches; all sizes differ, so that a swapped axis shows."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch import Tensor

from sbnmt_plugin.layout import live_places
from sbnmt_plugin.network.abd import ABDTransformerModel
from sbnmt_plugin.network.model import SBTransformerModel
from sbnmt_plugin.network.packed_batch import PackedBatch
from sbnmt_plugin.network.rnnsearch import RNNSearchModel
from sbnmt_plugin.symbols import TAGS

B, K, T, S, C, H = 3, 4, 5, 7, 8, 2
SIZES = {
    "encoder_embed_dim": C,
    "encoder_ffn_embed_dim": 10,
    "encoder_layers": 1,
    "encoder_attention_heads": H,
    "decoder_layers": 2,
    "decoder_attention_heads": H,
    "dropout": 0.0,
    "sb_future_dropout": 0.0,
}

RNN_SIZES = {
    "encoder_embed_dim": 3,
    "encoder_hidden_size": 2,
    "decoder_embed_dim": 5,
    "decoder_hidden_size": 6,
    "ba_history_size": 7,
}


def dictionary(words: int = 9, tags: bool = True) -> Dictionary:
    """<s> <pad> </s> <unk> w0 w1 … and the tags."""
    made = Dictionary()
    for i in range(words):
        made.add_symbol(f"w{i}")
    for tag in TAGS if tags else ():
        made.add_symbol(tag)
    return made


def fake_task(words: int = 9, tags: bool = True) -> Namespace:
    made = dictionary(words, tags)
    return Namespace(source_dictionary=made, target_dictionary=dictionary(words, tags))


def sb_model(seed: int = 1, words: int = 9, **options: Any) -> SBTransformerModel:
    """An SB-NMT model in float64 with weights large enough to make a difference."""
    torch.manual_seed(seed)
    model = SBTransformerModel.build_model(
        Namespace(**{**SIZES, **options}), fake_task(words)
    )
    return enlarge(model).double().eval()


def abd_model(seed: int = 1, words: int = 9, **options: Any) -> ABDTransformerModel:
    """An ABD-NMT model of the same size, in the same way."""
    torch.manual_seed(seed)
    model = ABDTransformerModel.build_model(
        Namespace(**{**SIZES, **options}), fake_task(words)
    )
    return enlarge(model).double().eval()


def rnn_model(
    history: str = "both", seed: int = 1, words: int = 9, **options: Any
) -> RNNSearchModel:
    """An RNNsearch with these histories, in the same way; all sizes differ."""
    torch.manual_seed(seed)
    args = Namespace(**{**RNN_SIZES, "ba_history": history, "dropout": 0.0, **options})
    return enlarge(RNNSearchModel.build_model(args, fake_task(words))).double().eval()


def transformer(seed: int = 1, words: int = 9, **options: Any) -> TransformerModel:
    """fairseq's own model of the same size."""
    torch.manual_seed(seed)
    args = Namespace(**{**SIZES, **options})
    base_architecture(args)
    model = TransformerModel.build_model(args, fake_task(words))
    return enlarge(model).double().eval()


def enlarge(model: Any) -> Any:
    """Random weights, biases and norms, so large that every input changes the output.

    With fairseq's small ones both directions write the same word for ever.
    """
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            scale = "norm" in name and name.endswith("weight")
            torch.nn.init.normal_(parameter, mean=float(scale), std=0.3)
        else:
            torch.nn.init.normal_(parameter, std=0.8)
    return model


def source(model: Any, lengths: tuple[int, ...] = (7, 4, 6)) -> dict[str, Tensor]:
    """Left-padded source sentences of these lengths, </s> counted."""
    generator = torch.Generator().manual_seed(5)
    words = model.encoder.dictionary
    tokens = torch.full((len(lengths), max(lengths)), words.pad())
    for row, length in enumerate(lengths):
        tokens[row, -length:-1] = torch.randint(
            4, 13, (length - 1,), generator=generator
        )
        tokens[row, -1] = words.eos()
    return {"src_tokens": tokens, "src_lengths": torch.tensor(lengths)}


def streams(
    model: Any, lengths: tuple[tuple[int, int], ...] = ((5, 5), (3, 5), (4, 2))
) -> Tensor:
    """Decoder input (2B, T): a tag and words per stream, padded on the right."""
    generator = torch.Generator().manual_seed(6)
    words = model.decoder.dictionary
    width = max(max(pair) for pair in lengths)
    rows = torch.full((2 * len(lengths), width), words.pad())
    for sentence, pair in enumerate(lengths):
        for direction, length in enumerate(pair):
            row = rows[2 * sentence + direction]
            row[0] = words.index(TAGS[direction])
            row[1:length] = torch.randint(4, 13, (length - 1,), generator=generator)
    return rows


def live_of(prev: Tensor) -> Tensor:
    """The places of streams that are no padding."""
    return live_places(prev.ne(dictionary().pad()))


def packed(padding: Tensor) -> PackedBatch:
    """The batch of streams with this padding (2B, T)."""
    return PackedBatch(live_places(~padding), padding.t().shape)


def logits(model: Any, prev: Tensor, lengths: tuple[int, ...] = (7, 4, 6)) -> Tensor:
    """(2B, T, V) of the full forward pass."""
    output, _ = model(**source(model, lengths), prev_output_tokens=prev)
    return output
