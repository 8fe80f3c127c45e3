"""Protocols of decoders and models: what the rest of the plugin asks them for.

The search knows nothing of layers.  It asks a :class:`Decoder` for the next tokens of N
hypotheses, says which of them live on, and asks again.  A decoder of a new family needs
these methods and no base class; fairseq's own get them from
:mod:`fairseq_decoder`.  From step to step it keeps a state: ours a
:class:`kv_cache.KVCache`, for a recurrent one perhaps a matrix.  Steps run in torch's
inference mode: what a module itself keeps of one cannot be saved for gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

from torch import Tensor
from torch.utils.hooks import RemovableHandle

from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.grid import AttentionGrid
from sbnmt_plugin.network.next_tokens import NextTokens


class DecoderState(Protocol):
    """The state of a decoder from one step to the next: its cache, and its source."""

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

    def step(self, tokens: Tensor, state: State) -> tuple[NextTokens, Tensor | None]:
        """Score the next tokens.

        Args:
            tokens: (N, t + 1) the hypotheses so far, their start symbols first.  All
                but the last token were there in the step before, but for what
                :meth:`DecoderState.select` has moved.
            state: of :meth:`start`; changed.

        Returns:
            (N, V) scores, and attention to the source (N, S), or None where it was not
            asked for or the decoder has none.
        """


@runtime_checkable
class Forced(Protocol):
    """A decoder that also scores given texts: see :mod:`score_texts`.

    Attributes:
        interacts: whether the scores of a stream depend on the other stream.
    """

    interacts: bool

    def log_probabilities(
        self,
        inputs: Tensor,
        grid: AttentionGrid,
        rows: Tensor,
        labels: Tensor,
        encoder_out: Any,
    ) -> Tensor:
        """Score tokens of given streams, each of which stands alone.

        Args:
            inputs: (N, T).
            grid: whose rows are computed: see :class:`grid.PrefixTrees`.
            rows: (m,) of the grid, ascending.
            labels: (m,) tokens that follow them.
            encoder_out: one entry a sentence.

        Returns:
            (m,) of the labels.
        """


@runtime_checkable
class Watched(Protocol):
    """A decoder that shows where its streams look at each other: for traces."""

    def watch(self, watcher: Callable[..., None]) -> None:
        """Call ``watcher`` at every step.

        Its arguments are fusion, queries, keys, mask, history and future of the last
        layer: see :class:`trace.Tracer`.
        """


@runtime_checkable
class Ablatable(Protocol):
    """A module whose part in what is written can be taken away: for probes.

    Attributes:
        ablated: name of what is taken away, such as ``future``.
    """

    ablated: str

    def ablate(self) -> RemovableHandle:
        """Take it away until the handle is removed."""


class Model:
    """Declarations of a model about itself, with the values of one that says nothing.

    The search asks a model for its ``decoder``, and for what every encoder-decoder of
    fairseq has: ``encoder.forward_torchscript(net_input)``, whose result goes to
    :meth:`Decoder.start` as it is, ``max_decoder_positions()``, ``parameters()`` and
    ``eval()``.  All else it may declare, as attributes and methods of these names, by
    deriving from this class or without it; fairseq's own models declare nothing.
    :func:`said` asks.

    Attributes:
        searched_by: name of its search (see :mod:`registry`).
        bidirectional: whether it writes both directions at once.
        reads_across: whether its two streams read each other in training, so that a
            probe has something to measure.
        writes_at_once: whether it writes all words at once, so that it cannot be
            stopped after each.
        never_r2l: why it cannot write R2L; "": it can.
        function: its own settings without weights, by which the same weights compute
            something else: a training that goes on keeps them.
    """

    searched_by = "synchronous"
    bidirectional = False
    reads_across = False
    writes_at_once = False
    never_r2l = ""
    function: tuple[str, ...] = ()

    @classmethod
    def trained_languages(cls, settings: Any) -> tuple[str, str] | None:
        """Languages of a training from which those of the command may differ.

        Args:
            settings: the model's in its checkpoint.
        """
        return None

    def check_task(self, cfg: Any, training: bool) -> None:
        """Refuse options of the task that do not fit this model.

        Raises:
            ValueError: with the flag.
        """

    def check_starts(self, settings: Any, starts: list[tuple[Any, bool]]) -> None:
        """Refuse to train from checkpoints that do not fit this model.

        Args:
            settings: the model's.
            starts: each :class:`checkpoints.Checkpoint`, and whether the training
                begins anew from it, without its optimiser.

        Raises:
            ValueError: with the flag; here, one is of another task, whose dictionaries
                lack the tags.
        """
        for checkpoint, _ in starts:
            if checkpoint.settings.get("sb_dictionaries") is None:
                raise ValueError(
                    f"{checkpoint.path} must have been trained by --task "
                    f"sb_translation to start this architecture, but its dictionaries "
                    "lack the tags: train it by this task"
                )

    def forced_inputs(
        self, encoder_out: Any, tokens: Tensor, directions: int
    ) -> tuple[Any, Tensor, Layout]:
        """Prepare to write given texts step by step with :attr:`decoder`.

        Args:
            encoder_out: of B sentences.
            tokens: (BD, T) start symbol and text.
            directions: D.

        Returns:
            The encoder output, inputs and layout that the decoder's ``start`` and
            ``step`` are called with.
        """
        return encoder_out, tokens, Layout(directions)


def name_of(model: Any) -> str:
    """Return the name of a model's architecture, or of its class, for messages."""
    return str(getattr(model, "family", type(model).__name__))


def said(model: Any, name: str) -> Any:
    """Return a declaration of a model, or of its class: see :class:`Model`."""
    if hasattr(model, name):
        return getattr(model, name)
    default = vars(Model)[name]
    kind = model if isinstance(model, type) else type(model)
    return default.__get__(model, kind) if hasattr(default, "__get__") else default
