"""fairseq's Transformer decoder for both directions at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from sbnmt_plugin.layout import TRAINING, Layout, live_places
from sbnmt_plugin.network.decoder_layer import SBDecoderLayer, wrapped
from sbnmt_plugin.network.grid import AttentionGrid, PackedBatch
from sbnmt_plugin.network.kv_cache import KVCache
from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.numerics import LOGITS_AT_A_TIME


class SBTransformerDecoder(TransformerDecoderBase):
    """Decoder of both directions at once: N = 2BK rows for B encoded sentences.

    ``prev_output_tokens`` is (N, T), laid out as in :mod:`layout`; the encoder
    output keeps one copy a sentence.

    Attributes:
        layer_class: of its layers.
    """

    layer_class: type[nn.Module] = SBDecoderLayer

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: Any, **kwargs: Any):
        super().__init__(cfg, dictionary, embed_tokens, **kwargs)
        # Present in every checkpoint of ours: tells it from a Transformer's.
        self.register_buffer("sb_version", torch.tensor([1]))

    def build_decoder_layer(self, cfg: Any, no_encoder_attn: bool = False) -> nn.Module:
        """Build a layer of :attr:`layer_class`; the parent names another."""
        return wrapped(self.layer_class(cfg, no_encoder_attn), cfg)

    @property
    def interacts(self) -> bool:
        """Tell whether any layer adds anything of the future."""
        # all of them: in training --decoder-layerdrop leaves some out by chance
        layers: Any = self.layers._modules.values()
        return any(layer.self_attn.fusion.adds for layer in layers)

    def watch(self, watcher: Callable[..., None]) -> None:
        """See :class:`protocol.Watched`."""
        attention: Any = self.layers[-1].self_attn
        attention.watcher = partial(watcher, attention.fusion)

    def start(self, encoder_out: Any, layout: Layout, weights: bool = False) -> KVCache:
        """Return an empty cache: see :meth:`protocol.Decoder.start`."""
        return KVCache(layout, encoder_out, weights)

    def step(self, tokens: Tensor, state: KVCache) -> tuple[NextTokens, Tensor | None]:
        """Score the next tokens: see :meth:`protocol.Decoder.step`."""
        last = self.num_layers - 1 if state.wants_weights else None
        rows, extra = self.live_rows(tokens, state.encoder_out, state, last)
        logits = self.output_layer(rows)  # (N, V)
        (weights,) = extra["attn"]  # (N, 1, S)
        looked = None if weights is None else weights[:, -1]
        return NextTokens.of_logits(logits), looked

    def log_probabilities(
        self,
        inputs: Tensor,
        grid: AttentionGrid,
        rows: Tensor,
        labels: Tensor,
        encoder_out: Any,
    ) -> Tensor:
        """Score given streams, each alone, as with λ = 0, and teacher-forced.

        Args and result: see :meth:`protocol.Forced.log_probabilities`.
        """
        size = max(1, LOGITS_AT_A_TIME // self.output_projection.out_features)
        ends = torch.arange(size, max(size, inputs.numel()), size, device=rows.device)
        parts = torch.searchsorted(rows, ends).tolist()  # before a GPU is at work
        parts = [part for part in parts if part < len(rows)]
        computed, _ = self.live_rows(inputs, encoder_out, grid)
        pairs = zip(rows.tensor_split(parts), labels.tensor_split(parts))
        found = []
        for number, (own, label) in enumerate(pairs):
            part = computed[number * size : (number + 1) * size]
            following = NextTokens.of_logits(self.output_layer(part))
            found.append(following.lprob(own - number * size, label))
        return torch.cat(found)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any = None,
        incremental_state: KVCache | None = None,
        features_only: bool = False,
        live: Tensor | None = None,
        layout: Layout = TRAINING,
        **others: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Compute (N, T, V) logits, or (N, T, C) features; in search T = 1.

        Args:
            live: (n,) the places that are no padding: see
                :class:`grid.PackedBatch`.  Where given, logits of these alone,
                (n, V), step by step and there stream by stream.
            layout: who reads whom, without an ``incremental_state``.
            others: the parent's, which change nothing here.

        Raises:
            ValueError: the rows are not two streams a sentence, or the cache is
                not ours: a generator or task that knows one stream only.
        """
        grid: AttentionGrid | None = incremental_state
        if grid is None:
            grid = self.packed(prev_output_tokens, layout, live)
        rows, extra = self.live_rows(prev_output_tokens, encoder_out, grid)
        x = rows if live is not None else grid.give(rows)
        return x if features_only else self.output_layer(x), extra

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: Any = None, **others: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """Compute features (N, T, C): see :meth:`forward`."""
        return self(prev_output_tokens, encoder_out, features_only=True, **others)

    def packed(
        self, tokens: Tensor, layout: Layout = TRAINING, live: Tensor | None = None
    ) -> PackedBatch:
        """Pack the rows of streams (N, T), also of those that no collater has made."""
        if live is None:
            live = live_places(tokens.ne(self.padding_idx))
        streams, steps = tokens.shape
        return PackedBatch(live, (steps, streams), layout)

    def live_rows(
        self,
        tokens: Tensor,
        encoder_out: Any,
        grid: AttentionGrid,
        alignment_layer: int | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Apply all layers to live rows: :meth:`forward` without padding.

        Args:
            tokens: (N, T).
            alignment_layer: number of the layer whose attention to the source is
                returned; None: no attention is.

        Returns:
            rows (n, C), and fairseq's dictionary: ``attn`` holds None or, in search
            alone, the mean (N, 1, S) over heads of the attention to the source.
        """
        self.check(tokens, encoder_out, grid)
        grid.begin(tokens)
        memories = self.memories(encoder_out)
        x = grid.take(self._embed(tokens, grid))
        if self.training and torch.is_grad_enabled() and not x.requires_grad:
            # all below is frozen: checkpointed layers, and those that
            # --decoder-layerdrop leaves out, would have no gradient to hand on
            x.requires_grad_()
        found = None
        for number, layer in enumerate(self.layers):
            wanted = number == alignment_layer
            x, weights, _ = layer(
                x,
                incremental_state=grid,
                need_attn=wanted,
                need_head_weights=wanted,
                **memories,
            )
            if wanted:
                found = weights.mean(0)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        if self.project_out_dim is not None:
            x = self.project_out_dim(x)
        return x, {"attn": [found], "inner_states": []}

    def memories(self, encoder_out: Any) -> dict[str, Tensor | None]:
        """Return the outputs that the layers attend to, by the names of arguments."""
        names = ("encoder_out", "encoder_padding_mask")
        return {name: ((encoder_out or {}).get(name) or [None])[0] for name in names}

    def _embed(self, tokens: Tensor, grid: AttentionGrid) -> Tensor:
        """Embed the first layer's input, (N, T, C); in search the last step alone."""
        positions = None
        if self.embed_positions is not None and isinstance(grid, KVCache):
            positions = grid.position(partial(self._first_positions, tokens))
        elif self.embed_positions is not None:
            positions = self.embed_positions(tokens)
        if isinstance(grid, KVCache):
            tokens = tokens[:, -1:]
        x = self.embed_scale * self.embed_tokens(tokens)
        for layer in (self.quant_noise, self.project_in_dim):
            x = x if layer is None else layer(x)
        if positions is not None:
            x = x + positions
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        return self.dropout_module(x)

    def _first_positions(self, tokens: Tensor, count: int) -> Tensor:
        """Embed the first ``count`` positions, or as many as there are: (1, T, C).

        fairseq's modules would compute a step's position from all tokens, anew at
        every step.
        """
        assert self.embed_positions is not None
        count = min(count, self.max_positions())
        word = tokens.new_full((1, count), self.dictionary.unk())  # any but padding
        positions: Tensor = self.embed_positions(word)
        return positions

    def check(self, tokens: Tensor, encoder_out: Any, grid: Any) -> None:
        """Refuse rows of one stream a sentence: see :meth:`forward`."""
        layout = getattr(grid, "layout", None)
        if encoder_out is not None and encoder_out["encoder_out"]:
            sentences = encoder_out["encoder_out"][0].size(1)
            if layout is None or len(tokens) != sentences * layout.group:
                raise ValueError(
                    f"this --arch reads two target streams, but got {len(tokens)} "
                    f"decoder rows for {sentences} sentences: train and decode it with "
                    "--user-dir sbnmt_plugin --task sb_translation"
                )
