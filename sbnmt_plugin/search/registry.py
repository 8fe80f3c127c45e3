"""The searches by name, and what they share: a new family's search is a new class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from sbnmt_plugin.layout import L2R, NAMES, R2L
from sbnmt_plugin.network.protocol import Model, said
from sbnmt_plugin.search.options import SearchOptions, Symbols

DEFAULT = Model.searched_by


@dataclass(eq=False)
class Search:
    """Translates batches: fairseq calls it a generator.

    Args:
        models: fairseq encoder-decoder models that share a target dictionary.
        symbols: the dictionary's special ids.
        options: of the search.
        recorder: called with the sample and, per sentence, the winning direction
            and the best hypothesis of each direction that has one.
        tracer: told of every step, and at the end of the sample and its results;
            see :class:`trace.Tracer`.

    Raises:
        ValueError: an option of :meth:`unsupported` is given.

    Attributes:
        shares_beam: whether ``--beam`` counts the hypotheses of both directions
            together, or each has as many.
        described: its models, and why they cannot honour every option; for messages.
    """

    shares_beam = True
    described = "the SB-NMT search"

    models: list[Any]
    symbols: Symbols
    options: SearchOptions
    recorder: Callable[..., None] | None = None
    tracer: Any = None

    def __post_init__(self) -> None:
        self._refuse(self.unsupported())
        # what fairseq-generate leaves out of the text that it prints
        self.symbols_to_strip_from_output = {self.symbols.eos, *self.symbols.never}

    def unsupported(self) -> dict[str, Any]:
        """Options that it cannot honour, by flag; those that are true are refused."""
        return {}

    def prepare(self, task: Any) -> None:
        """Load what options of the family name, before the first batch.

        Args:
            task: ``task.cfg`` has the options, and ``task.loaded`` keeps what has been
                loaded for the next search.
        """

    @torch.no_grad()
    def generate(
        self,
        models: list[Any],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Any = None,
    ) -> list[list[dict[str, Any]]]:
        """Translate a batch, as fairseq calls it, without dropout and gradients.

        Args:
            models: ignored in favour of the constructor's, as in fairseq.
            sample: fairseq's batch; ``net_input`` with ``src_tokens`` (B, S) is read,
                ``id`` where it is there.
            prefix_tokens: (B, P) start of every answer; its ``</s>`` and padding bind
                nothing.
            constraints: None.

        Returns:
            Hypotheses of each sentence, best first: see :meth:`translate`.

        Raises:
            ValueError: constraints, prefixes of another shape or for R2L hypotheses
                alone, or lengths and bans that nothing can satisfy.
            FloatingPointError: a sentence for which no hypothesis has a score,
                because the model gives none.
        """
        self._refuse({"--constraints": constraints})
        prefix = self._prefix(prefix_tokens, sample["net_input"]["src_tokens"])
        for model in self.models:
            model.eval()
        return self.translate(sample, prefix)

    def translate(
        self, sample: dict[str, Any], prefix: Tensor
    ) -> list[list[dict[str, Any]]]:
        """Search: see :meth:`generate`, which has checked the arguments.

        Args:
            prefix: (B, P) how answers must begin, padded; P = 0: as they like.
        """
        raise NotImplementedError

    def _prefix(self, given: Tensor | None, sources: Tensor) -> Tensor:
        """Check a forced prefix, and turn its ``</s>`` into padding."""
        prefix = sources[:, :0] if given is None else given
        if prefix.dim() != 2 or len(prefix) != len(sources):
            raise ValueError(
                "prefix_tokens must have the shape (sentences, tokens), here "
                f"({len(sources)}, any), but has {tuple(prefix.shape)}"
            )
        alone = self.options.answer == NAMES[R2L] or L2R not in self.options.directions
        if prefix.size(1) and alone:
            raise ValueError(
                "--prefix-size binds the start of the text, which R2L decoding writes "
                "last: it needs L2R hypotheses that may answer"
            )
        return prefix.masked_fill(prefix == self.symbols.eos, self.symbols.pad)

    def _refuse(self, given: dict[str, Any]) -> None:
        """Refuse by name what the search cannot honour.

        Raises:
            ValueError: with the first that is given.
        """
        for flag, value in given.items():
            if value is not None and value is not False:
                raise ValueError(
                    f"{flag} is not supported by {self.described}: leave it out"
                )


Kind = TypeVar("Kind", bound=type[Search])
SEARCHES: dict[str, type[Search]] = {}


def register_search(name: str) -> Callable[[Kind], Kind]:
    """Register a class of searches, which models choose by ``searched_by = name``."""

    def register(search: Kind) -> Kind:
        SEARCHES[name] = search
        return search

    return register


def search_for(models: list[Any]) -> type[Any]:
    """Return the class of searches that the models of an ensemble want.

    Raises:
        ValueError: they want different ones.
    """
    names = {said(model, "searched_by") for model in models}
    if len(names) > 1:
        raise ValueError(
            "the models of an ensemble must want the same search, but want "
            f"{' and '.join(sorted(names))}: translate with models of one family"
        )
    (name,) = names
    return SEARCHES[name]
