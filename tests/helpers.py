"""Tiny models and batches; all sizes differ, so that a swapped axis shows."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch import Tensor

from sbnmt_plugin.families.abd.model import ABDTransformerModel
from sbnmt_plugin.families.ba.model import RNNSearchModel
from sbnmt_plugin.families.enat.model import ENATModel
from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.families.two_way.model import TwoWayModel
from sbnmt_plugin.layout import Layout, live_places
from sbnmt_plugin.network.fairseq_decoder import searchable
from sbnmt_plugin.network.grid import PackedBatch
from sbnmt_plugin.symbols import TAGS

B, K, T, S, C, H = 3, 4, 5, 7, 8, 2
SIZES = {
    "encoder_embed_dim": C,
    "encoder_ffn_embed_dim": 10,
    "encoder_layers": 1,
    "encoder_attention_heads": H,
    "decoder_layers": 2,
    "decoder_attention_heads": H,
    "sb_future_dropout": 0.0,
}

RNN_SIZES = {
    "encoder_embed_dim": 3,
    "encoder_hidden_size": 2,
    "decoder_embed_dim": 5,
    "decoder_hidden_size": 6,
    "ba_history_size": 7,
}

TWO_WAY_SIZES = {
    "decoder_embed_dim": 8,
    "decoder_ffn_embed_dim": 10,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "two_way_units": 6,
}


def dictionary(words: int = 9, tags: bool = True) -> Dictionary:
    """<s> <pad> </s> <unk> w0 w1 … and the tags."""
    made = Dictionary()
    for i in range(words):
        made.add_symbol(f"w{i}")
    for tag in TAGS if tags else ():
        made.add_symbol(tag)
    return made


def fake_task(
    words: int = 9, tags: bool = True, sources: int | None = None
) -> Namespace:
    """Make a task, with as many words in the source as in the target by default."""
    return Namespace(
        source_dictionary=dictionary(words if sources is None else sources, tags),
        target_dictionary=dictionary(words, tags),
        cfg=Namespace(source_lang="en", target_lang="de"),
    )


def built(kind: Any, sizes: dict[str, Any], seed: int, task: Any, options: Any) -> Any:
    """A model in float64 with weights large enough to make a difference."""
    torch.manual_seed(seed)
    model = kind.build_model(Namespace(**{**sizes, "dropout": 0.0, **options}), task)
    return enlarge(model).double().eval()


def registered(
    kind: Any, architecture: str, words: int = 9, sources: int = 9, **options: Any
) -> Any:
    """A model of a registered architecture, with its own sizes."""
    args = Namespace(**options)
    ARCH_CONFIG_REGISTRY[architecture](args)
    return kind.build_model(args, fake_task(words, sources=sources))


def sb_model(seed: int = 1, words: int = 9, **options: Any) -> SBTransformerModel:
    """An SB-NMT model: see :func:`built`."""
    return built(SBTransformerModel, SIZES, seed, fake_task(words), options)


def abd_model(seed: int = 1, words: int = 9, **options: Any) -> ABDTransformerModel:
    """An ABD-NMT model of the same size."""
    return built(ABDTransformerModel, SIZES, seed, fake_task(words), options)


def rnn_model(
    history: str = "both", seed: int = 1, words: int = 9, **options: Any
) -> RNNSearchModel:
    """An RNNsearch with these histories; all sizes differ."""
    options["ba_history"] = history
    return built(RNNSearchModel, RNN_SIZES, seed, fake_task(words), options)


def two_way_model(
    seed: int = 1, words: int = 9, sources: int = 11, **options: Any
) -> TwoWayModel:
    """A two-way model, whose vocabularies differ."""
    task = fake_task(words, sources=sources)
    return built(TwoWayModel, TWO_WAY_SIZES, seed, task, options)


def enat_model(
    given: str = "phrase", seed: int = 1, words: int = 9, **options: Any
) -> ENATModel:
    """An ENAT model with this input, which has counted two lengths."""
    options = {"share_all_embeddings": True, "enat_input": given, **options}
    model = built(ENATModel, SIZES, seed, fake_task(words), options)
    model.tokens_written += 6
    model.tokens_read += 5
    return model


def transformer(seed: int = 1, words: int = 9, **options: Any) -> TransformerModel:
    """fairseq's own model of the same size."""
    args = Namespace(**{**SIZES, **options})
    base_architecture(args)
    return built(TransformerModel, {}, seed, fake_task(words), vars(args))


def assert_same_gradients(
    fast: Tensor, slow: Tensor, inputs: Iterable[Tensor], atol: float = 1e-10
) -> None:
    """Check that two results are equal, and so is the gradient of a weighted sum."""
    inputs = list(inputs)
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-10)
    weight = torch.randn_like(slow)
    ours, theirs = (
        torch.autograd.grad((x * weight).sum(), inputs, allow_unused=True)
        for x in (fast, slow)
    )
    for one, other in zip(ours, theirs):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=atol)


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


def target(lengths: tuple[int, ...] = (5, 3, 4)) -> Tensor:
    """Decoder input (B, T) of one direction: </s> and words, padded on the right."""
    words = dictionary()
    generator = torch.Generator().manual_seed(6)
    rows = torch.full((len(lengths), max(lengths)), words.pad())
    for row, length in zip(rows, lengths):
        row[0] = words.eos()
        row[1:length] = torch.randint(4, 13, (length - 1,), generator=generator)
    return rows


def written(model: Any, beam: int, weights: bool = False) -> Iterator[tuple[Any, ...]]:
    """T steps of a decoder of one direction, while ranks change and a sentence leaves.

    Yields:
        For every hypothesis of every step its source (S,), padding included, its words
        so far, log p of the next one (V,) and attention.
    """
    net_input, decoder = source(model), searchable(model)
    tokens = net_input["src_tokens"]
    encoder_out = model.encoder.forward_torchscript(net_input)
    state = decoder.start(encoder_out, Layout(1, beam), weights=weights)
    generator = torch.Generator().manual_seed(9)
    kept = torch.arange(len(tokens))
    words = torch.full((len(tokens) * beam, 1), dictionary().eos())
    for step in range(T):
        following, attention = decoder.step(words, state)
        looked = [None] * len(words) if attention is None else attention
        for row, prefix in enumerate(words):
            one = tokens[kept[row // beam]]
            yield one, prefix, following.lprobs()[row], looked[row]
        sentences = torch.arange(len(kept))
        if step == 2:  # the one in the middle is done
            sentences = torch.tensor([0, 2])
            kept = kept[sentences]
        ranks = torch.randint(beam, (len(kept), beam), generator=generator)
        rows = (sentences[:, None] * beam + ranks).flatten()
        state.select(rows)
        new = torch.randint(4, 13, (len(rows), 1), generator=generator)
        words = torch.cat([words[rows], new], 1)


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
    """Find the places of streams that are no padding."""
    return live_places(prev.ne(dictionary().pad()))


def packed(padding: Tensor) -> PackedBatch:
    """Pack streams with this padding (2B, T)."""
    return PackedBatch(live_places(~padding), padding.t().shape)


def big_sizes(kind: Any) -> list[int]:
    """Count parameters of a family's big model and of fairseq's, as shapes alone."""
    task = fake_task(words=29994)  # 30,000 with the four specials and the tags
    found = []
    with torch.device("meta"):
        for each, name in (kind, kind.family), (TransformerModel, "transformer"):
            args = Namespace(share_all_embeddings=True)
            ARCH_CONFIG_REGISTRY[f"{name}_wmt_en_de_big"](args)
            assert args.dropout == (0.1 if each is kind else 0.3)
            model = each.build_model(args, task)
            found.append(sum(p.numel() for p in model.parameters()))
    return found


def logits(model: Any, prev: Tensor, lengths: tuple[int, ...] = (7, 4, 6)) -> Tensor:
    """Compute logits (2B, T, V) by the full forward pass."""
    output, _ = model(**source(model, lengths), prev_output_tokens=prev)
    return output


def changed_words(model: Any) -> Iterator[tuple[int, int, Tensor, Tensor]]:
    """Change every word that streams of full length read, one step after the other.

    Yields:
        The step, the direction of the stream that reads another word, and where the
        logits of that stream and of its partner stay as they were, (B, T) each.
    """
    prev = streams(model, ((T, T),) * B)
    before = logits(model, prev)
    for step in range(1, T):
        for direction in (0, 1):
            changed = prev.clone()
            changed[direction::2, step] = (changed[direction::2, step] - 3) % 9 + 4
            after = logits(model, changed)
            same = torch.isclose(before, after, rtol=0, atol=1e-10).all(-1)
            yield step, direction, same[direction::2], same[1 - direction :: 2]


def assert_scores_as(plain: TransformerModel, model: Any, direction: int) -> None:
    """Check that a direction's logits are those of fairseq's Transformer."""
    prev = streams(model)
    rows = prev[direction::2]
    expected, _ = plain(**source(plain), prev_output_tokens=rows)
    shown = rows.ne(plain.decoder.dictionary.pad())
    ours = logits(model, prev)[direction::2]
    torch.testing.assert_close(ours[shown], expected[shown], rtol=0, atol=1e-10)
