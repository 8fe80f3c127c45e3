"""BA-NMT and its baseline RNNsearch*: recurrent, one direction, with histories.

Xue, Feng, You, Zhang, Li: Neural Machine Translation with Bilingual History Involved
Attention.  An encoder of two GRUs, a decoder of two GRU cells with attention between
them (that of dl4mt-tutorial, session 2, which the paper names as its baseline), and
what :mod:`ba.attention` adds.  With y the embedding of the word before::

    s_0 = tanh(W_0 mean_j h_j + b_0) ;   q_i = GRU_1(y_{i-1}, s_{i-1})
    s_i = GRU_2(a_i, q_i)                                                   eq. 7
    t_i = tanh(W [y_{i-1}; s_i; a_i; h̄_i; s̄_i] + b)                         eq. 8
    p(y_i) = softmax(W_o dropout(t_i) + b_o)                                eq. 9, 10

Departs from the paper where it is silent or at odds with its baseline: the state that
asks is q_i, not s_{i-1}; t_i has a tanh; A = H, and G as well where nothing else is
said.  A matrix on a concatenation is the sum of the paper's.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import (
    FairseqEncoderDecoderModel,
    register_model,
    register_model_architecture,
)
from torch import nn

from sbnmt_plugin.checkpoint_checks import check_function
from sbnmt_plugin.checkpoints import Checkpoint
from sbnmt_plugin.families.ba.attention import HISTORIES
from sbnmt_plugin.families.ba.decoder import RNNEncoder, RNNSearchDecoder
from sbnmt_plugin.network.transformer import (
    Family,
    refuse_below_one,
    set_defaults,
    tag_indices,
    writable,
)
from sbnmt_plugin.task_options import option

FIRST = 0.1  # weights begin in ± this


@dataclass
class RNNSearchConfig(FairseqDataclass):
    """Sizes by fairseq's names, and histories; defaults are the paper's."""

    encoder_embed_dim: int = option(512, "encoder embedding dimension")
    encoder_hidden_size: int = option(
        512, "hidden size of each of the encoder's two directions"
    )
    decoder_embed_dim: int = option(512, "decoder embedding dimension")
    decoder_hidden_size: int = option(
        512, "size of the decoder's state, and of its attention"
    )
    dropout: float = option(0.2, "dropout before the output matrix")
    share_decoder_input_output_embed: bool = option(
        False, "share decoder input and output embeddings"
    )
    share_all_embeddings: bool = option(False, "share all embeddings (one dictionary)")
    ba_history: ChoiceEnum(list(HISTORIES)) = option(  # type: ignore[valid-type]
        "none",
        "what attention remembers of each source word: nothing (none), what it has "
        "given (source), for which target words (target), or both",
    )
    ba_history_size: Optional[int] = option(
        None, "size of a history. Default: --decoder-hidden-size"
    )


@register_model("rnnsearch")
class RNNSearchModel(Family, FairseqEncoderDecoderModel):
    """RNNsearch*, SA-NMT, TA-NMT and BA-NMT: one model with different histories.

    Train and decode with ``--task sb_translation --sb-direction l2r`` (or ``r2l``).
    """

    family = "rnnsearch"
    config = RNNSearchConfig

    @classmethod
    def build_model(cls, args: Any, task: Any) -> "RNNSearchModel":
        """Build from a namespace, on which resolved values are left to be saved.

        Raises:
            ValueError: sizes that do not fit; a dictionary without tags (the wrong
                task: another's search knows no histories).
        """
        with writable(args):
            set_defaults(args, cls.config)
        refuse_below_one(args, cls.config)
        sizes = args.encoder_embed_dim, args.decoder_embed_dim
        if args.share_all_embeddings and sizes[0] != sizes[1]:
            raise ValueError(
                "--share-all-embeddings needs --encoder-embed-dim and "
                f"--decoder-embed-dim to be equal, but they are {sizes[0]} and "
                f"{sizes[1]}"
            )
        words, others = task.source_dictionary, task.target_dictionary
        tag_indices(others, cls.family)
        if args.share_all_embeddings and words != others:
            raise ValueError(
                "--share-all-embeddings needs one dictionary for both languages: "
                "binarise with --joined-dictionary, or leave it out"
            )
        target = embedding(others, args.decoder_embed_dim)
        source = target
        if not args.share_all_embeddings:
            source = embedding(words, args.encoder_embed_dim)
        encoder = RNNEncoder(words, source, args.encoder_hidden_size)
        model = cls(encoder, RNNSearchDecoder(args, others, target))
        for parameter in model.parameters():
            nn.init.uniform_(parameter, -FIRST, FIRST)
        for table in source, target:
            nn.init.zeros_(table.weight[table.padding_idx])
        return model

    def check_starts(
        self, settings: Any, starts: list[tuple[Checkpoint, bool]]
    ) -> None:
        """See :meth:`protocol.Model.check_starts`.

        Raises:
            ValueError: the histories of a training are others.
        """
        for checkpoint, _ in starts:
            check_function(checkpoint, settings, ("ba_history", "ba_history_size"))


def embedding(dictionary: Any, channels: int) -> nn.Embedding:
    """Make the embeddings of all words; padding is zero, and stays so."""
    return nn.Embedding(len(dictionary), channels, dictionary.pad())


ARCHITECTURES = {
    "rnnsearch": "none",
    "sa_nmt": "source",
    "ta_nmt": "target",
    "ba_nmt": "both",
}
for name, history in ARCHITECTURES.items():
    defaults = partial(set_defaults, config=RNNSearchConfig, ba_history=history)
    register_model_architecture("rnnsearch", name)(defaults)
