"""Options of the search, from fairseq's generation options and ours, checked."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

from fairseq.dataclass.configs import GenerationConfig

from sbnmt_plugin.layout import DEFAULT_BEAM, NAMES, PAIRINGS
from sbnmt_plugin.search.options import PREFIX_NEEDS_L2R, SearchOptions
from sbnmt_plugin.search.penalties import LENGTH_PENALTIES
from sbnmt_plugin.search.pool import STOPS

logger = logging.getLogger(__name__)
Choice = TypeVar("Choice")

ANSWERS = ("best", *NAMES)
ALIGNMENTS = ("hard", "soft")
LARGEST_ALPHA = 20
LARGEST_WEIGHT = 10**6
SMALLEST_TEMPERATURE = 1e-6
SEARCH_OPTIONS = (
    "sb_pairing",
    "sb_length_penalty",
    "sb_stop",
    "sb_answer",
    "sb_rescore",
)
UNSUPPORTED = [
    "match_source_len",
    "score_reference",
    "sampling",
    "sampling_topk",
    "sampling_topp",
    "constraints",
    "diverse_beam_groups",
    "diverse_beam_strength",
    "diversity_rate",
    "lm_path",
    "lm_weight",
    "print_step",
    "iter_decode_eos_penalty",
    "iter_decode_max_iter",
    "iter_decode_force_max_iter",
    "iter_decode_with_beam",
    "iter_decode_with_external_reranker",
    "retain_iter_history",
    "retain_dropout",
    "retain_dropout_modules",
    "decoding_format",
    "replace_unk",
    "no_early_stop",
    "beam_mt",
    "lenpen_mt",
    "max_len_a_mt",
    "max_len_b_mt",
    "eos_token",
]


def search_options(
    args: Any,
    cfg: Any,
    directions: tuple[int, ...],
    shared: bool = True,
    has_bound: bool = True,
) -> SearchOptions:
    """Read the search's options from the command line, or a caller's overrides.

    Args:
        shared: whether ``--beam`` counts the hypotheses of all directions together.
        has_bound: see :class:`registry.Search`.

    Raises:
        ValueError: an option that the search cannot honour, or a bad value.
    """
    for name in UNSUPPORTED:
        default = GenerationConfig.__dataclass_fields__[name].default
        value = getattr(args, name, default)
        if value is not None and value != default:
            flag = "--" + name.replace("_", "-")
            raise ValueError(
                f"{flag} is not supported by the SB-NMT search: leave it out"
            )

    check_types(args)

    def ours(name: str) -> str:
        return str(getattr(args, name, None) or getattr(cfg, name))

    beam = getattr(args, "beam", DEFAULT_BEAM)
    sharing = len(directions) if shared else 1
    if beam < sharing:
        raise ValueError(
            f"--beam must be ≥ {sharing}, one hypothesis per direction, but is "
            f"{beam} instead"
        )
    if beam % sharing:
        logger.warning("--beam %d is odd; searching with %d", beam, beam - 1)
        beam -= 1
    nbest = getattr(args, "nbest", beam)
    if not 1 <= nbest <= beam:
        raise ValueError(
            f"--nbest must be in 1 … {beam}, the hypotheses of --beam, but is {nbest}"
        )
    unnormalized = getattr(args, "unnormalized", False)
    alpha = 0.0 if unnormalized else float(getattr(args, "lenpen", 1))
    options = SearchOptions(
        beam=beam,
        directions=directions,
        pairing=chosen("--sb-pairing", ours("sb_pairing"), PAIRINGS),
        penalty=chosen(
            "--sb-length-penalty", ours("sb_length_penalty"), LENGTH_PENALTIES
        )(alpha),
        stop=ours("sb_stop"),
        answer=ours("sb_answer"),
        rescore=number("sb_rescore", args, cfg),
        nbest=nbest,
        min_len=getattr(args, "min_len", 1),
        max_len_a=getattr(args, "max_len_a", 0),
        max_len_b=getattr(args, "max_len_b", 200),
        unkpen=getattr(args, "unkpen", 0),
        temperature=getattr(args, "temperature", 1.0),
        no_repeat_ngram_size=getattr(args, "no_repeat_ngram_size", 0),
        print_alignment=getattr(args, "print_alignment", None),
    )
    check_options(options, getattr(args, "prefix_size", 0), has_bound)
    return options


def number(name: str, args: Any, cfg: Any) -> float:
    """Return an option of ours whose value is a number.

    Raises:
        ValueError: it is none.
    """
    value = getattr(args, name, None)
    value = getattr(cfg, name) if value is None else value
    if not isinstance(value, Real):
        flag = "--" + name.replace("_", "-")
        raise ValueError(f"{flag} must be a number, but is {value!r} instead")
    return float(value)


def chosen(flag: str, name: str, known: Mapping[str, Choice]) -> Choice:
    """Look a name up.

    Raises:
        ValueError: an unknown one.
    """
    if name not in known:
        raise ValueError(
            f"{flag} must be one of {', '.join(known)}, but is {name!r} instead"
        )
    return known[name]


def check_types(args: Any) -> None:
    """Refuse what is no number, or no truth value, where fairseq's option is one.

    Raises:
        ValueError: with the first such option.
    """
    kinds = {
        int: (Integral, "a whole number"),
        float: (Real, "a number"),
        bool: (bool, "True or False"),
    }
    for name, option in GenerationConfig.__dataclass_fields__.items():
        allowed, words = kinds.get(option.type, (object, ""))
        value = getattr(args, name, option.default)
        if not isinstance(value, allowed):
            flag = "--" + name.replace("_", "-")
            raise ValueError(f"{flag} must be {words}, but is {value!r} instead")


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
    unknown = sorted(set(names) - (known - {"prefix_size", "nbest"}))
    if unknown:
        raise ValueError(
            f"{where} has unknown options {', '.join(unknown)}: use the names of "
            "fairseq-generate's search options with underscores"
        )


def check_options(
    options: SearchOptions, prefix_size: int, has_bound: bool = True
) -> None:
    """Refuse values with which the search would not be what it says.

    Args:
        has_bound: see :class:`registry.Search`.

    Raises:
        ValueError: see the messages.
    """
    choices = {
        "--sb-stop": (options.stop, STOPS),
        "--sb-answer": (options.answer, ANSWERS),
        "--print-alignment": (options.print_alignment or ALIGNMENTS[0], ALIGNMENTS),
    }
    for flag, (value, allowed) in choices.items():
        chosen(flag, value, {name: name for name in allowed})
    if not 0 <= options.rescore <= LARGEST_WEIGHT:
        raise ValueError(
            f"--sb-rescore must be in [0, {LARGEST_WEIGHT:,}], where the search's own "
            f"score still counts, but is {options.rescore} instead"
        )
    if options.no_repeat_ngram_size < 0:
        raise ValueError(
            f"--no-repeat-ngram-size must be ≥ 0, but is "
            f"{options.no_repeat_ngram_size} instead"
        )
    if options.min_len < 0:
        raise ValueError(f"--min-len must be ≥ 0, but is {options.min_len} instead")
    if not math.isfinite(options.max_len_a):
        raise ValueError(
            f"--max-len-a must be finite, but is {options.max_len_a} instead"
        )
    if not SMALLEST_TEMPERATURE <= options.temperature < math.inf:
        raise ValueError(
            f"--temperature must be finite and ≥ {SMALLEST_TEMPERATURE}, where scores "
            f"stay finite, but is {options.temperature} instead"
        )
    if not abs(options.penalty.alpha) <= LARGEST_ALPHA:
        raise ValueError(
            f"--lenpen must be in [-{LARGEST_ALPHA}, {LARGEST_ALPHA}], where scores "
            f"can still be told apart, but is {options.penalty.alpha} instead"
        )
    if math.isnan(options.unkpen) or options.unkpen == -math.inf:
        raise ValueError(f"--unkpen must be > -inf, but is {options.unkpen} instead")
    if options.unkpen < 0 and options.stop == "bound" and has_bound:
        raise ValueError(
            f"--unkpen must be ≥ 0 with --sb-stop bound, which counts on scores that "
            f"only fall, but is {options.unkpen} instead: use --sb-stop first"
        )
    if prefix_size > 0 and not options.binds_prefixes:
        raise ValueError(PREFIX_NEEDS_L2R)
