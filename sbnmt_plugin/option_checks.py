"""Options of task ``sb_translation`` that would be ignored, or not do what they say.

Each is refused by its name, before anything is read or trained.
"""

import argparse
from typing import Any, NoReturn

from sbnmt_plugin.checkpoints import Checkpoint
from sbnmt_plugin.config import SBTranslationConfig
from sbnmt_plugin.families.sb.initialisation import check_reader, freezes_writer
from sbnmt_plugin.search.registry import DEFAULT

REFUSED = {
    "num_batch_buckets": "its padding would stand inside the streams",
    "load_alignments": "alignment losses know one target stream",
}
# flags of 0.2.0 that are gone, and the remedy.  Checkpoints that were trained with
# them are read as ever: what stands in their settings asks for nothing any more.
RETIRED = {
    "--sb-same-text": "train on three triples with --sb-partner-noise instead",
    "--sb-partner": "leave it out (text), or use --sb-partner-noise (own)",
    "--sb-partner-dropout": "leave it out",
    "--sb-freeze-writer": "leave it out: --sb-reader freezes the writer",
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
        raise ValueError(f"{flag} is no option any more: {RETIRED[flag]}")


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


def refuse_options(cfg: SBTranslationConfig) -> None:
    """Refuse by name what would be ignored, or would not do what it says.

    Raises:
        ValueError: see the messages.
    """
    for name, reason in REFUSED.items():
        if getattr(cfg, name):
            flag = "--" + name.replace("_", "-")
            raise ValueError(f"{flag} is not supported by sb_translation: {reason}")
    for flag, path in ("records", cfg.sb_records), ("trace", cfg.sb_trace):
        if cfg.eval_bleu and path is not None:
            raise ValueError(
                f"--sb-{flag} is for decoding, not for --eval-bleu, which would "
                "write every sentence at every validation: leave one of them out"
            )
    if cfg.left_pad_target:
        raise ValueError(
            "--left-pad-target is not supported: both streams start at position 0; "
            "leave it out"
        )
    if cfg.num_shards not in (None, 1):
        raise ValueError(
            "--num-shards is ignored by fairseq-generate: shard with "
            "--distributed-world-size N --distributed-rank I instead"
        )
    check_partners(cfg)
    check_autocast(cfg)


def refuse_narrow_training(cfg: SBTranslationConfig) -> None:
    """Raise ValueError where a flag of decoding stands beside a training."""
    for name in ("sb_bf16", "sb_int8"):
        if getattr(cfg, name):
            raise ValueError(
                f"--{name.replace('_', '-')} is for decoding, not for training: leave "
                "it out (--sb-autocast trains in bfloat16, fairseq's --fp16 or --amp "
                "in float16 on a GPU)"
            )
    for name in ("sb_records", "sb_trace"):
        if getattr(cfg, name) is not None:
            raise ValueError(
                f"--{name.replace('_', '-')} is for decoding, not for training: leave "
                "it out"
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


def check_autocast(cfg: SBTranslationConfig) -> None:
    """Refuse ``--sb-autocast`` where nothing, or something else, would act on it.

    Raises:
        ValueError: see the messages.
    """
    if not cfg.sb_autocast:
        return
    if cfg.sb_path is not None:
        raise ValueError(
            "--sb-autocast is for training, not for decoding: leave it out (--sb-bf16 "
            "decodes in bfloat16)"
        )
    others = {"fp16": cfg.sb_fp16, "bf16": cfg.sb_fairseq_bf16, "amp": cfg.sb_amp}
    for flag, given in others.items():
        if given:
            raise ValueError(
                f"--sb-autocast and --{flag} each say in what numbers to train, and "
                "cannot both be given: leave one of them out"
            )


def check_partners(cfg: SBTranslationConfig) -> None:
    """Refuse wrong values of the options by which partners are changed and probed.

    Raises:
        ValueError: with the flag.
    """
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
    for flag, given in ("--sb-partner-noise", rate), ("--sb-probe", cfg.sb_probe):
        if given and str(cfg.sb_direction) != "both":
            raise ValueError(
                f"{flag} needs --sb-direction both: a model of one direction has no "
                "partner"
            )
        if given and cfg.sb_path is not None:
            raise ValueError(f"{flag} is for training, not for decoding: leave it out")


def check_model(cfg: SBTranslationConfig, model: Any, settings: Any) -> None:
    """Refuse a model that does not fit the task's options.

    Args:
        settings: of the model.

    Raises:
        ValueError: a one-directional architecture for two streams or the other way
            round; options for streams that read each other; a phrase table that is
            missing.
    """
    wanted = str(cfg.sb_direction)
    if getattr(model, "bidirectional", False) != (wanted == "both"):
        both = "an sb_transformer* or abd_transformer*"
        needed = both if wanted == "both" else "a one-directional"
        name = getattr(settings, "arch", None) or getattr(settings, "_name", "?")
        raise ValueError(
            f"--sb-direction {wanted} needs {needed} --arch, but it is {name}"
        )
    if cfg.sb_probe and getattr(model, "searched_by", DEFAULT) != DEFAULT:
        raise ValueError(
            "--sb-probe needs two streams that read each other, as those of an "
            "sb_transformer do: leave it out"
        )
    if getattr(model, "reads_lookup", False) and cfg.enat_table is None:
        raise ValueError(
            "--enat-input phrase reads what a phrase table gives, but there is none: "
            "add --enat-table with the file of sbnmt phrase-table"
        )


def check_frozen(
    cfg: SBTranslationConfig, model: Any, settings: Any, starts: list[Checkpoint]
) -> None:
    """Refuse to train beside weights that nobody has trained, to go on with other ones
    than an optimiser knows, and to lose a reader.

    Args:
        settings: the model's.
        starts: the checkpoints that the training may start from.

    Raises:
        ValueError: the model's writer is frozen, and no checkpoint is given; that of
            one that a training goes on from was not, or the other way round; it has a
            reader, and the model reads without one.
    """
    frozen = freezes_writer(settings)
    if frozen and not starts:
        raise ValueError(
            "--sb-reader keeps the weights that a training starts from, but nothing is "
            "given to start from: add --finetune-from-model MODEL"
        )
    for checkpoint in starts:
        path = checkpoint.path
        anew = path == cfg.sb_finetune_from_model or bool(cfg.sb_reset_optimizer)
        saved = argparse.Namespace(**checkpoint.settings)
        if not anew and freezes_writer(saved) != frozen:
            known = "all" if frozen else "the reader's"
            raise ValueError(
                f"{path} has an optimiser of {known} weights, with which a training "
                f"{'with' if frozen else 'without'} --sb-reader cannot go on: start "
                f"anew, with --finetune-from-model {path} and another --save-dir"
            )
        if hasattr(model.decoder, "interacts"):
            fresh = model.state_dict()
            check_reader(checkpoint.shapes, fresh, model.decoder.interacts)


def check_parallel(
    cfg: SBTranslationConfig, models: list[Any], training: bool = False
) -> None:
    """Refuse options of ENAT's that none of the models would act on.

    Raises:
        ValueError: with the flag.
    """
    if cfg.enat_table is not None and not any(
        getattr(model, "reads_lookup", False) for model in models
    ):
        raise ValueError(
            "--enat-table is for an enat_transformer of --enat-input phrase, and "
            "nothing here reads it: leave it out"
        )
    if cfg.nat_teacher is not None and any(
        getattr(model, "searched_by", DEFAULT) != "parallel" for model in models
    ):
        raise ValueError(
            "--nat-teacher is for an enat_transformer, whose words are written at "
            "once: leave it out"
        )
    if cfg.nat_teacher is not None and training and not cfg.eval_bleu:
        raise ValueError(
            "--nat-teacher scores translations, and training makes none without "
            "--eval-bleu: add it, or leave --nat-teacher out"
        )
