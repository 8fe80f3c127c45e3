"""Two-way translation: one model of both translation directions, on a grid.

Bahar, Brix, Ney: Two-Way Neural Machine Translation: A Proof of Concept for
Bidirectional Translation Modeling using a Two-Dimensional Grid.  Both texts are read
by causal stacks, h and s; an LSTM runs over all pairs of their places (see
:mod:`lstm_2d`); a maximum along either axis predicts the other text::

    p(e_i | e_<i, f) = softmax(W_e max_j z_{j,i} + b_e)
    p(f_j | f_<j, e) = softmax(W_f max_i z_{j,i} + b_f)

Two-way is source and target, not left and right: the model writes both from the left.
There is one path, from the source to the target.  A checkpoint serves the exchanged
languages by exchanging its weights as it is loaded: see :func:`transpose_weights`.

Departs from the paper in what J and I count: ``</s>`` too.  With words alone z_{J,i}
would not have read f_J, and e could not depend on it.
"""

from functools import partial
from typing import Any

from fairseq.models import (
    FairseqEncoderDecoderModel,
    register_model,
    register_model_architecture,
)
from torch import Tensor

from sbnmt_plugin.checkpoint_checks import exchanged_languages
from sbnmt_plugin.families.two_way.decoder import (
    TwoWayConfig,
    TwoWayDecoder,
    TwoWayEncoder,
)
from sbnmt_plugin.families.two_way.lstm_2d import mix_negated
from sbnmt_plugin.network.transformer import (
    Family,
    refuse_below_one,
    set_defaults,
    tag_indices,
    writable,
)

# what changes places with what where the languages do
AXES = (
    ("encoder.axis.", "decoder.axis."),
    ("decoder.grid.source.weight", "decoder.grid.target.weight"),
    ("decoder.grid.source_past.", "decoder.grid.target_past."),
    ("decoder.forth.", "decoder.back."),
)


@register_model("two_way")
class TwoWayModel(Family, FairseqEncoderDecoderModel):
    """One model of both translation directions.

    Train with ``--task sb_translation --sb-direction l2r --criterion
    two_way_cross_entropy``; decode with the languages of the training, or with them
    exchanged.

    Attributes:
        exchanged: whether weights that are loaded are those of the exchanged languages.
    """

    family = "two_way"
    config = TwoWayConfig
    never_r2l = "reads and writes both texts from the left"
    exchanged = False

    @classmethod
    def build_model(cls, args: Any, task: Any) -> "TwoWayModel":
        """Build from a namespace, on which resolved values are left to be saved.

        ``two_way_languages``, those of the training, are left there as well.

        Raises:
            ValueError: sizes that do not fit; a dictionary without tags (the wrong
                task); a checkpoint of other languages.
        """
        languages = [task.cfg.source_lang, task.cfg.target_lang]
        with writable(args):
            set_defaults(args, cls.config)
            args.two_way_languages = getattr(args, "two_way_languages", languages)
        refuse_below_one(args, cls.config)
        channels, heads = args.decoder_embed_dim, args.decoder_attention_heads
        if channels % heads:
            raise ValueError(
                "--decoder-embed-dim must be a multiple of --decoder-attention-heads, "
                f"but is {channels} for {heads} heads"
            )
        source, target = task.source_dictionary, task.target_dictionary
        tag_indices(target, cls.family)
        model = cls(TwoWayEncoder(args, source), TwoWayDecoder(args, source, target))
        model.exchanged = exchanged_languages(args.two_way_languages, *languages)
        return model

    @classmethod
    def trained_languages(cls, settings: Any) -> tuple[str, str] | None:
        """See :meth:`protocol.Model.trained_languages`."""
        saved = getattr(settings, "two_way_languages", None)
        return tuple(saved) if saved else None

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Any,
        prev_output_tokens: Tensor,
        live: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """See :meth:`TwoWayDecoder.forward`.

        Raises:
            ValueError: a criterion that trains one direction alone.
        """
        if live is None and self.training:
            raise ValueError(
                "a two_way model learns both translation directions at once: train it "
                "with --criterion two_way_cross_entropy"
            )
        encoder_out = self.encoder(src_tokens)
        return self.decoder(prev_output_tokens, encoder_out, live)

    def upgrade_state_dict_named(
        self, state_dict: dict[str, Tensor], name: str
    ) -> None:
        """Exchange the languages of a checkpoint, where the command does."""
        super().upgrade_state_dict_named(state_dict, name)
        if self.exchanged:  # until they are loaded
            transpose_weights(state_dict)
            self.exchanged = False


def transpose_weights(weights: dict[str, Tensor]) -> None:
    """Turn a model of f and e into the same model of e and f, in place.

    The axes change places, and so do the two pasts of every cell; with them the gate
    that mixes these changes its sign.  Twice is the model as it was.
    """
    places = {**dict(AXES), **{b: a for a, b in AXES}}
    found = {}
    for name, value in weights.items():
        start = next((x for x in places if name.startswith(x)), "")
        new = places.get(start, "") + name.removeprefix(start)
        found[new] = mix_negated(value) if ".grid." in name else value
    weights.clear()
    weights.update(found)


TINY = {
    "decoder_embed_dim": 64,
    "decoder_ffn_embed_dim": 64,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "two_way_units": 64,
}
for name, sizes in {"two_way": {}, "two_way_tiny": TINY}.items():
    defaults = partial(set_defaults, config=TwoWayConfig, **sizes)
    register_model_architecture("two_way", name)(defaults)
