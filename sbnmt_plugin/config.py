"""The options of task ``sb_translation``."""

from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks.translation import TranslationConfig
from omegaconf import II

from sbnmt_plugin.layout import L2R, PAIRINGS, R2L
from sbnmt_plugin.search.arguments import ANSWERS
from sbnmt_plugin.search.penalties import LENGTH_PENALTIES
from sbnmt_plugin.search.pool import STOPS
from sbnmt_plugin.search.registry import DEFAULT
from sbnmt_plugin.steps import command_of
from sbnmt_plugin.training.partners import PARTNERS

DIRECTIONS = {"both": (L2R, R2L), "l2r": (L2R,), "r2l": (R2L,)}
REFUSED = {
    "num_batch_buckets": "its padding would stand inside the streams",
    "load_alignments": "alignment losses know one target stream",
}


@dataclass
class SBTranslationConfig(TranslationConfig):
    """fairseq's translation options and ours."""

    sb_direction: ChoiceEnum(tuple(DIRECTIONS)) = field(  # type: ignore[valid-type]
        default="both",
        metadata={
            "help": "both streams (SB-NMT), or the one that a teacher of --arch "
            "transformer writes"
        },
    )
    sb_pairing: ChoiceEnum(tuple(PAIRINGS)) = field(  # type: ignore[valid-type]
        default="rank",
        metadata={
            "help": "whom a hypothesis attends to: the other side's of the same rank, "
            "or its best"
        },
    )
    sb_length_penalty: ChoiceEnum(tuple(LENGTH_PENALTIES)) = field(  # type: ignore[valid-type]
        default="gnmt",
        metadata={
            "help": "scores of n tokens are divided by ((5 + n) / 6) ** lenpen (gnmt, "
            "the paper's) or n ** lenpen (power, fairseq's)"
        },
    )
    sb_stop: ChoiceEnum(STOPS) = field(  # type: ignore[valid-type]
        default="bound",
        metadata={
            "help": "a sentence is done when nothing can change its --nbest answers "
            "any more (bound; its whole pool, where --sb-records, --sb-trace or "
            "--sb-rescore see it), or as soon as the pool is full (first; only the "
            "best of a direction's candidates, as many as it has hypotheses, may "
            "finish then, as in fairseq, so that a teacher's --beam 1 is greedy search)"
        },
    )
    sb_answer: ChoiceEnum(ANSWERS) = field(  # type: ignore[valid-type]
        default="best",
        metadata={"help": "which direction may answer; the other decodes along"},
    )
    sb_rescore: float = field(
        default=0.0,
        metadata={
            "help": "W: score what has finished once more in both directions without "
            "interaction, and rank by score + W * (sum of both) / length penalty; 0: "
            "the search's score alone"
        },
    )
    sb_partner: ChoiceEnum(PARTNERS) = field(  # type: ignore[valid-type]
        default="text",
        metadata={
            "help": "what a stream reads in training where both hold the same text: "
            "that text, or words that the model itself would have written (own)"
        },
    )
    sb_partner_noise: Optional[float] = field(
        default=None,
        metadata={
            "help": "R: where both streams hold the same text, corrupt the inputs of "
            "each in training at a rate from U(0, R); default: 0, and 1 with "
            "--sb-partner own"
        },
    )
    sb_same_text: float = field(
        default=0.0,
        metadata={
            "help": "share of the training triples whose streams both hold the same "
            "one of their two texts, so that reading the other is rewarded"
        },
    )
    sb_probe: int = field(
        default=0,
        metadata={
            "help": "N: log every N updates how many bits a token each direction reads "
            "of the other (read_bits_*), on some validation text; 0: never"
        },
    )
    sb_autocast: bool = field(
        default=False,
        metadata={
            "help": "train with products in bfloat16 and weights in float32 "
            "(torch.autocast), faster on CPUs that have bfloat16 instructions, from "
            "some 500 channels on. Not beside --fp16, --bf16 and --amp"
        },
    )
    enat_table: Optional[str] = field(
        default=None,
        metadata={
            "help": f"phrase table of {command_of('phrase-table')}, by which the "
            "sources are looked up for an enat_transformer of --enat-input phrase"
        },
    )
    nat_teacher: Optional[str] = field(
        default=None,
        metadata={
            "help": "checkpoint of a Transformer of --sb-direction l2r that chooses "
            "among the lengths which an enat_transformer has written"
        },
    )
    sb_bf16: bool = field(
        default=False,
        metadata={
            "help": "decode with bfloat16 weights, several times as fast on CPUs that "
            "have bfloat16 instructions; softmax and scores stay float32. A "
            "translation may then depend on its batch: of a Multi30k teacher's, 3 of "
            "1,000 differed between batches of 1 and of 32 (float32: none), and 65 "
            "from float32's. Not beside --fp16"
        },
    )
    sb_int8: bool = field(
        default=False,
        metadata={
            "help": "decode on a CPU with 8-bit weights of the decoder's linear "
            "layers; the rest stays float32. Faster where weights are large, with "
            "bfloat16 instructions or not. Not beside --sb-bf16 or --fp16"
        },
    )
    sb_records: Optional[str] = field(
        default=None,
        metadata={
            "help": "write a JSON line per sentence to this new file: the direction "
            "that won, and both directions' best hypotheses and scores"
        },
    )
    sb_trace: Optional[str] = field(
        default=None,
        metadata={
            "help": "write a JSON line per sentence to this new file: all that both "
            f"beams did, step by step, for {command_of('trace-page')}. Slow; for a "
            "few sentences"
        },
    )
    # what other groups say, so that it can be checked; no flags of their own
    sb_seed: int = II("common.seed")
    # (no bool, which fairseq would make of the reference itself: True)
    sb_fp16: Any = "${common.fp16}"
    sb_fairseq_bf16: Any = "${common.bf16}"
    sb_amp: Any = "${common.amp}"
    sb_store_ema: Any = "${ema.store_ema}"
    sb_disable_validation: Any = "${dataset.disable_validation}"
    num_shards: int = II("dataset.num_shards")
    sb_path: Optional[str] = II("common_eval.path")
    sb_restore_file: str = II("checkpoint.restore_file")
    sb_save_dir: str = II("checkpoint.save_dir")
    sb_finetune_from_model: Optional[str] = II("checkpoint.finetune_from_model")
    sb_continue_once: Optional[str] = II("checkpoint.continue_once")


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
    weights from a Transformer's, and multiplies counters by its decay.

    Raises:
        ValueError: with the flag.
    """
    ours = any(
        name.endswith("sb_version") or not value.is_floating_point()
        for name, value in model.state_dict().items()
    )
    if cfg.sb_store_ema and ours:
        raise ValueError(
            f"--store-ema is not supported for a {type(model).__name__}, of which "
            "fairseq would leave out what it is known by: leave the flag out, and "
            f"average checkpoints ({command_of('average')})"
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
    """Refuse values of the options by which training may change partners.

    Raises:
        ValueError: with the flag.
    """
    rate = cfg.sb_partner_noise
    if rate is not None and not 0 <= rate <= 1:
        raise ValueError(f"--sb-partner-noise must be in [0, 1], but is {rate} instead")
    if not 0 <= cfg.sb_same_text <= 1:
        raise ValueError(
            f"--sb-same-text must be in [0, 1], but is {cfg.sb_same_text} instead"
        )
    if cfg.sb_probe < 0:
        raise ValueError(f"--sb-probe must be ≥ 0, but is {cfg.sb_probe} instead")
    if cfg.sb_probe and cfg.sb_disable_validation is True:
        raise ValueError(
            "--sb-probe reads validation text, of which --disable-validation loads "
            "none: leave one of the two out"
        )
    asked = {
        "--sb-partner own": str(cfg.sb_partner) == "own",
        "--sb-partner-noise": bool(rate),
        "--sb-same-text": bool(cfg.sb_same_text),
        "--sb-probe": bool(cfg.sb_probe),
    }
    for flag, given in asked.items():
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
    asked = {
        "--sb-partner own": str(cfg.sb_partner) == "own",
        "--sb-probe": bool(cfg.sb_probe),
    }
    for flag, given in asked.items():
        if given and getattr(model, "searched_by", DEFAULT) != DEFAULT:
            raise ValueError(
                f"{flag} needs two streams that read each other, as those of an "
                "sb_transformer do: leave it out"
            )
    if getattr(model, "reads_lookup", False) and cfg.enat_table is None:
        raise ValueError(
            "--enat-input phrase reads what a phrase table gives, but there is none: "
            f"add --enat-table with the file of {command_of('phrase-table')}"
        )


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
