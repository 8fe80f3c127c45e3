"""Which search a model wants, by name: a new family's search is a new file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

DEFAULT = "synchronous"


class Search(Protocol):
    """What fairseq calls a generator: translates batches.

    Its class is made with (models, symbols, options, recorder, tracer), as
    :class:`generator.Generator` is.

    Attributes:
        shares_beam: whether ``--beam`` counts the hypotheses of both directions
            together, or each has as many.
        has_bound: whether ``--sb-stop bound`` counts on scores that only fall; it does
            where a class does not say.
    """

    shares_beam: bool
    has_bound: bool

    def generate(
        self,
        models: list[Any],
        sample: dict[str, Any],
        prefix_tokens: Any = None,
        constraints: Any = None,
    ) -> list[list[dict[str, Any]]]:
        """Hypotheses of each sentence, best first: see :mod:`answers`."""


Kind = TypeVar("Kind", bound=type[Search])
SEARCHES: dict[str, type[Search]] = {}


def register_search(name: str) -> Callable[[Kind], Kind]:
    """Let models choose a class of searches by ``searched_by = name``.

    Raises:
        ValueError: the name is taken by another class.
    """

    def register(search: Kind) -> Kind:
        if SEARCHES.setdefault(name, search) is not search:
            raise ValueError(
                f"a search must have a name of its own, but {name} is taken by "
                f"{SEARCHES[name].__name__}: choose another"
            )
        return search

    return register


def refuse_given(given: dict[str, bool], who: str) -> None:
    """Refuse by name what a search cannot honour.

    Args:
        given: whether each flag, or what stands for one, is there.
        who: a family, and why it cannot.

    Raises:
        ValueError: with the first that is there.
    """
    for flag, there in given.items():
        if there:
            raise ValueError(f"{flag} is not supported by {who}: leave it out")


def search_for(models: list[Any]) -> type[Any]:
    """The class of searches that the models of an ensemble want.

    Raises:
        ValueError: they want different ones, or one that nobody has registered.
    """
    names = {getattr(model, "searched_by", DEFAULT) for model in models}
    if len(names) > 1:
        raise ValueError(
            "the models of an ensemble must want the same search, but want "
            f"{' and '.join(sorted(names))}: translate with models of one family"
        )
    (name,) = names
    if name not in SEARCHES:
        raise ValueError(
            f"searched_by must be one of {', '.join(SEARCHES)}, but a model says "
            f"{name!r}: import the module that registers it"
        )
    return SEARCHES[name]
