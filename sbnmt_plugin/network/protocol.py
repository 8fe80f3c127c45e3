"""Protocol between decoder and search, and attributes of a model.

The search knows nothing of layers.  It asks a :class:`Decoder` for the next tokens of N
hypotheses, says which of them live on, and asks again.  A decoder of a new family needs
these methods and no base class; fairseq's own get them from
:mod:`fairseq_decoder`.  From step to step it keeps a state: ours a
:class:`kv_cache.KVCache`, for a recurrent one perhaps a matrix.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.next_tokens import NextTokens


class DecoderState(Protocol):
    """State of a decoder from one step to the next: its cache, and its source."""

    def select(self, rows: Tensor) -> None:
        """Go on with these rows: row i becomes what row ``rows[i]`` was.

        Called between two steps; the tokens of the next one are in the new order.

        Args:
            rows: (N',) the parents of the hypotheses that live on, each of the same
                sentence and direction as its child; sentences keep their order.
                N' < N where some have finished: all G rows of these are left out.
        """


State = TypeVar("State", bound=DecoderState)


@runtime_checkable
class Decoder(Protocol[State]):
    """Decoder that writes N hypotheses of B sentences token by token.

    Rows are laid out as :mod:`layout` says: all G hypotheses of a sentence are
    neighbours.
    """

    def start(self, encoder_out: Any, layout: Layout, weights: bool = False) -> State:
        """Return the state before the first token.

        Args:
            encoder_out: of the model's encoder, one entry a sentence.
            layout: D, K, and who is whose partner.
            weights: whether :meth:`step` is to give attention to the source.
        """

    def step(
        self, tokens: Tensor, state: State, temperature: float = 1.0
    ) -> tuple[NextTokens, Tensor | None]:
        """Score the next tokens.

        Args:
            tokens: (N, t + 1) the hypotheses so far, their start symbols first.  All
                but the last token were there in the step before, but for what
                :meth:`DecoderState.select` has moved.
            state: of :meth:`start`; changed.
            temperature: by which logits are divided, in float32 at least.

        Returns:
            (N, V) scores, and attention to the source (N, S), or None where it was not
            asked for or the decoder has none.
        """


@runtime_checkable
class Forced(Protocol):
    """A decoder of both directions that also scores given texts, for rescoring.

    Attributes:
        interacts: whether the scores of a stream depend on the other stream.
    """

    interacts: bool

    def log_probabilities(
        self,
        inputs: Tensor,
        labels: Tensor,
        live: Tensor,
        layout: Layout,
        encoder_out: Any,
        temperature: float = 1.0,
    ) -> Tensor:
        """Score given streams, each alone.

        Args:
            inputs, labels: (N, T).
            live: (n,) the places that are no padding: see :func:`layout.live_places`.
            layout: D = 1 and K streams a sentence.
            encoder_out: one entry a sentence.
            temperature: as for :meth:`Decoder.step`.

        Returns:
            (n,) of the labels, step by step and there stream by stream.
        """


class Searchable(Protocol):
    """Class attributes by which a model describes itself.

    The search asks a model for its ``decoder``, and for what every encoder-decoder of
    fairseq has: ``encoder.forward_torchscript(net_input)``, whose result goes to
    :meth:`Decoder.start` as it is, ``max_decoder_positions()``, ``parameters()`` and
    ``eval()``.

    Attributes:
        searched_by: name of its search (see :mod:`registry`); without it, the
            synchronous beam search.
        bidirectional: whether it writes both directions at once.
    """

    searched_by: str
    bidirectional: bool
