"""Options of the search, from fairseq's generation options and ours, checked."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

from fairseq.dataclass.configs import GenerationConfig

from sbnmt_plugin.fairseq_options import GENERATE, acts, refuse, refuse_names
from sbnmt_plugin.layout import NAMES, PAIRINGS
from sbnmt_plugin.search.lengths import FORMULAS, LARGEST_ALPHA, LARGEST_WEIGHT
from sbnmt_plugin.search.options import SearchOptions
from sbnmt_plugin.search.penalties import LengthPenalty
from sbnmt_plugin.search.pool import STOPS
from sbnmt_plugin.task_options import flag_of

logger = logging.getLogger(__name__)

ANSWERS = ("best", *NAMES)
ALIGNMENTS = ("hard", "soft")
CHOICES: dict[str, Collection[str]] = {
    "sb_pairing": PAIRINGS,
    "sb_length_penalty": FORMULAS,
    "sb_stop": STOPS,
    "sb_answer": ANSWERS,
}
SEARCH_OPTIONS = (*CHOICES, "sb_rescore", "sb_rescore_best")
KINDS = {
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    bool: (bool, "True or False"),
}
OWN = [  # of fairseq's options, those that search options are named after
    option
    for option in fields(SearchOptions)
    if option.name in GenerationConfig.__dataclass_fields__
]


def search_options(
    args: Any, cfg: Any, directions: tuple[int, ...], shared: bool = True
) -> SearchOptions:
    """Read the search's options from the command line, or a caller's overrides.

    Args:
        shared: whether ``--beam`` counts the hypotheses of all directions together.

    Raises:
        ValueError: an option that the search cannot honour, or a bad value.
    """
    for name, option in GenerationConfig.__dataclass_fields__.items():
        value = getattr(args, name, option.default)
        if not acts(name, GENERATE) and value not in (None, option.default):
            refuse(name, "the SB-NMT search")
        if (name, value) != ("nbest", None):  # None: see SearchOptions
            check_type(name, value, option.type)
    asked = {x: getattr(args, x, None) for x in SEARCH_OPTIONS}
    own = {x: getattr(cfg, x) if y is None else y for x, y in asked.items()}
    own |= {x: str(own[x]) for x in CHOICES}
    for name, known in CHOICES.items():
        check_choice(flag_of(name), own[name], known)
    for name, kind in ("sb_rescore", float), ("sb_rescore_best", int):
        check_type(name, own[name], kind)
    given: dict[str, Any] = {x.name: getattr(args, x.name, x.default) for x in OWN}
    beam = given["beam"]
    sharing = len(directions) if shared else 1
    if beam < sharing:
        raise ValueError(
            f"--beam must be ≥ {sharing}, one hypothesis per direction, but is "
            f"{beam} instead"
        )
    if beam % sharing:
        level = logging.INFO if beam == GenerationConfig.beam else logging.WARNING
        logger.log(level, "--beam %d is odd; searching with %d", beam, beam - 1)
        beam -= 1
    given |= {"beam": beam, "nbest": getattr(args, "nbest", None)}
    unnormalized = getattr(args, "unnormalized", False)
    alpha = 0.0 if unnormalized else float(getattr(args, "lenpen", 1))
    options = SearchOptions(
        directions=directions,
        pairing=PAIRINGS[own["sb_pairing"]],
        penalty=LengthPenalty(own["sb_length_penalty"], alpha),
        stop=own["sb_stop"],
        answer=own["sb_answer"],
        rescore=float(own["sb_rescore"]),
        rescore_best=own["sb_rescore_best"],
        **given,
    )
    check_options(options)
    return options


def check_choice(flag: str, name: str, known: Collection[str]) -> None:
    """Refuse a name that is none of those known.

    Raises:
        ValueError: with them.
    """
    if name not in known:
        raise ValueError(
            f"{flag} must be one of {', '.join(known)}, but is {name!r} instead"
        )


def check_type(name: str, value: Any, kind: Any) -> None:
    """Refuse what is no number, or no truth value, where an option is one.

    Raises:
        ValueError: with the option.
    """
    allowed, words = KINDS.get(kind, (object, ""))
    if not isinstance(value, allowed):
        raise ValueError(f"{flag_of(name)} must be {words}, but is {value!r} instead")


def check_names(names: Any, where: str) -> None:
    """Refuse options that nothing would act on.

    ``prefix_size`` and ``nbest`` are fairseq-generate's own business.

    Args:
        names: of the options that a caller sets.
        where: who the caller is, for the message.

    Raises:
        ValueError: with all of them.
    """
    known = {*GenerationConfig.__dataclass_fields__, *SEARCH_OPTIONS}
    remedy = "use the names of fairseq-generate's search options with underscores"
    refuse_names(names, known - {"prefix_size", "nbest"}, where, remedy)


def check_options(options: SearchOptions) -> None:
    """Refuse values with which the search would not be what it says.

    Raises:
        ValueError: see the messages.
    """
    check_choice(
        "--print-alignment", options.print_alignment or ALIGNMENTS[0], ALIGNMENTS
    )
    nbest, alpha, best = options.nbest, options.penalty.alpha, options.rescore_best
    unkpen = options.unkpen
    rules: list[tuple[str, Any, bool, str]] = [
        (
            *("--sb-rescore", options.rescore, 0 <= options.rescore <= LARGEST_WEIGHT),
            f"in [0, {LARGEST_WEIGHT:,}], where the search's own score still counts",
        ),
        (
            *("--sb-rescore-best", best, 0 <= best <= options.beam),
            f"in 0 … {options.beam}, the hypotheses of --beam",
        ),
        (
            *("--sb-rescore-best", best, best == 0 or options.rescore > 0),
            "0 without --sb-rescore, which rescores (add that)",
        ),
        (
            *("--nbest", nbest, nbest is None or 1 <= nbest <= options.most_answers),
            f"in 1 … {options.most_answers}, the hypotheses of "
            + ("--sb-rescore-best" if options.rescore_best else "--beam"),
        ),
        (
            "--no-repeat-ngram-size",
            *(options.no_repeat_ngram_size, options.no_repeat_ngram_size >= 0, "≥ 0"),
        ),
        ("--min-len", options.min_len, options.min_len >= 0, "≥ 0"),
        ("--max-len-a", options.max_len_a, math.isfinite(options.max_len_a), "finite"),
        (
            *("--lenpen", alpha, abs(alpha) <= LARGEST_ALPHA),
            f"in [-{LARGEST_ALPHA}, {LARGEST_ALPHA}], where scores can still be told "
            "apart",
        ),
        ("--unkpen", unkpen, unkpen > -math.inf, "> -inf"),
        (
            *("--unkpen", unkpen, unkpen >= 0 or options.stop == "first"),
            f"≥ 0 with --sb-stop {options.stop}, which counts on scores that only fall "
            "(use --sb-stop first)",
        ),
    ]
    for flag, value, fine, rule in rules:
        if not fine:
            raise ValueError(f"{flag} must be {rule}, but is {value} instead")
