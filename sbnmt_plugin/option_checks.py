"""Refusal of options of task ``sb_translation`` that would be ignored or misread.

Each is refused by its name, before anything is read or trained.  An option that counts
in some commands, or for some models, says so in the metadata of its field (see
:mod:`task_options`), and :func:`refuse_out_of_scope` is the one loop that asks.
"""

import argparse
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NoReturn

from fairseq.models import MODEL_REGISTRY

from sbnmt_plugin.config import SBTranslationConfig, task_config
from sbnmt_plugin.network.protocol import said
from sbnmt_plugin.retired_options import RETIRED, refusal
from sbnmt_plugin.task_options import KEY, Scope, flag_of

REFUSED = {
    "num_batch_buckets": "its padding would stand inside the streams",
    "load_alignments": "alignment losses know one target stream",
    "left_pad_target": "both streams start at position 0",
}


class RetiredFlag(argparse.Action):
    """A flag that is known to the parser for its refusal alone."""

    def __call__(
        self, parser: Any, args: Any, value: Any, flag: Any = None
    ) -> NoReturn:
        """Refuse it.

        Raises:
            ValueError: always.
        """
        raise ValueError(refusal(flag))


def add_retired(parser: argparse.ArgumentParser) -> None:
    """Let a parser refuse the flags that are gone by their names.

    It would take ``--sb-partner`` for the beginning of another flag where it allows
    abbreviations, and call the others unknown.
    """
    for flag in RETIRED:
        parser.add_argument(
            flag,
            action=RetiredFlag,
            nargs="?",
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )


def refuse_out_of_scope(
    cfg: SBTranslationConfig,
    phase: str = "",
    models: Sequence[Any] = (),
    given: Any = None,
) -> None:
    """Refuse options that are given where they do not count.

    An option is given where it has another value than its default, and that is not
    empty, 0 or False.

    Args:
        phase: of the command, see :class:`task_options.Scope`; "": not known.
        models: of the command, where they are known.
        given: options of one call, which take the place of those of ``cfg``.

    Raises:
        ValueError: with the first such option.
    """
    for option in fields(task_config()):
        scope: Scope = option.metadata.get(KEY, Scope())
        value = getattr(cfg, option.name, None)
        value = getattr(given, option.name, None) or value
        if not value or str(value) == str(option.default):
            continue
        flag = flag_of(option.name)
        if phase and scope.phase not in ("", phase):
            instead = f" ({scope.instead})" if scope.instead else ""
            raise ValueError(
                f"{flag} is for {scope.phase}, not for {phase}: leave it out{instead}"
            )
        if scope.both_directions and str(cfg.sb_direction) != "both":
            raise ValueError(
                f"{flag} needs --sb-direction both: {scope.both_directions}"
            )
        known = [getattr(model, scope.model, False) for model in models if scope.model]
        if known and not any(known):
            raise ValueError(f"{flag} is for {scope.described}: leave it out")


def check_values(cfg: SBTranslationConfig) -> None:
    """Refuse values and combinations that would not do what they say.

    Raises:
        ValueError: see the messages.
    """
    for name, reason in REFUSED.items():
        if getattr(cfg, name):
            raise ValueError(
                f"{flag_of(name)} is not supported by sb_translation: {reason}; leave "
                "it out"
            )
    if cfg.num_shards not in (None, 1):
        raise ValueError(
            "--num-shards is ignored by fairseq-generate: shard with "
            "--distributed-world-size N --distributed-rank I instead"
        )
    rate = cfg.sb_partner_noise
    if rate is not None and not 0 <= rate <= 1:
        raise ValueError(f"--sb-partner-noise must be in [0, 1], but is {rate} instead")
    if cfg.sb_probe < 0:
        raise ValueError(f"--sb-probe must be ≥ 0, but is {cfg.sb_probe} instead")
    if cfg.sb_probe and cfg.sb_disable_validation is True:
        raise ValueError(
            "--sb-probe reads validation text, of which --disable-validation loads "
            "none: leave one of the two out"
        )
    others = {"fp16": cfg.sb_fp16, "bf16": cfg.sb_fairseq_bf16, "amp": cfg.sb_amp}
    for flag, value in others.items():
        if cfg.sb_autocast and value:
            raise ValueError(
                f"--sb-autocast and --{flag} each say in what numbers to train, and "
                "cannot both be given: leave one of them out"
            )


def check_average(cfg: SBTranslationConfig, model: Any) -> None:
    """Refuse fairseq's moving average of a model that it cannot be of.

    It leaves out what is called a version, by which a model of ours knows its own
    weights from a Transformer's, and takes whole numbers for weights.

    Raises:
        ValueError: with the flag.
    """
    if not cfg.sb_store_ema:
        return
    for name, value in model.state_dict().items():
        version = name.endswith("sb_version")
        if version or not value.is_floating_point():
            does = "leave out" if version else "multiply by its decay"
            raise ValueError(
                f"--store-ema is not supported for a {type(model).__name__}, of which "
                f"fairseq would {does} {name}: leave the flag out, and average "
                f"checkpoints (sbnmt average)"
            )


def check_model(cfg: SBTranslationConfig, model: Any, settings: Any) -> None:
    """Refuse a model that does not write in the task's directions.

    Args:
        settings: of the model.

    Raises:
        ValueError: a one-directional architecture for two streams or the other way
            round.
    """
    wanted = str(cfg.sb_direction)
    name = getattr(settings, "arch", None) or getattr(settings, "_name", "?")
    if wanted == "r2l" and (reason := said(model, "never_r2l")):
        raise ValueError(
            f"--sb-direction r2l is not for {name}, which {reason}: use --sb-direction "
            "l2r"
        )
    if said(model, "bidirectional") != (wanted == "both"):
        known = [n for n, kind in MODEL_REGISTRY.items() if said(kind, "bidirectional")]
        both = " or ".join(f"{name}*" for name in sorted(known, reverse=True))
        needed = f"an {both}" if wanted == "both" else "a one-directional"
        raise ValueError(
            f"--sb-direction {wanted} needs {needed} --arch, but it is {name}"
        )
