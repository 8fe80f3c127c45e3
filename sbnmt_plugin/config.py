"""The options of task ``sb_translation``, its own and those of the families."""

from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks.translation import TranslationConfig
from omegaconf import II

from sbnmt_plugin.layout import L2R, PAIRINGS, R2L
from sbnmt_plugin.search.arguments import ANSWERS
from sbnmt_plugin.search.penalties import LENGTH_PENALTIES
from sbnmt_plugin.search.pool import STOPS
from sbnmt_plugin.task_options import DECODING, TASK_OPTIONS, TRAINING, Scope, option

NO_PARTNER = "a model of one direction answers by itself and has no partner"
NARROW_TRAINING = (
    "--sb-autocast trains in bfloat16, fairseq's --fp16 or --amp in float16 on a GPU"
)
DIRECTIONS = {"both": (L2R, R2L), "l2r": (L2R,), "r2l": (R2L,)}


@dataclass
class SBTranslationConfig(TranslationConfig):
    """Options of fairseq's translation task and ours."""

    sb_direction: ChoiceEnum(tuple(DIRECTIONS)) = option(  # type: ignore[valid-type]
        "both",
        "both streams (SB-NMT), or the one that a teacher of --arch transformer writes",
    )
    sb_pairing: ChoiceEnum(tuple(PAIRINGS)) = option(  # type: ignore[valid-type]
        "rank",
        "partner that a hypothesis attends to: the other side's of the "
        "same rank, or its best",
        Scope(both_directions=NO_PARTNER),
    )
    sb_length_penalty: ChoiceEnum(tuple(LENGTH_PENALTIES)) = option(  # type: ignore[valid-type]
        "gnmt",
        "scores of n tokens are divided by ((5 + n) / 6) ** lenpen (gnmt, "
        "the paper's) or n ** lenpen (power, fairseq's)",
    )
    sb_stop: ChoiceEnum(STOPS) = option(  # type: ignore[valid-type]
        "horizon",
        "a sentence is done when nothing can change its --nbest answers, or those that "
        "--sb-rescore scores, any more (bound; its whole pool, where --sb-records or "
        "--sb-trace see it); the same, but once the pool is full, by a hypothesis of n "
        "tokens, nothing longer than 1.25 n + 2 is sought (horizon); or as soon as the "
        "pool is full (first; only the best of a direction's candidates, as many as it "
        "has hypotheses, may finish then, as in fairseq, so that a teacher's --beam 1 "
        "is greedy search)",
    )
    sb_answer: ChoiceEnum(ANSWERS) = option(  # type: ignore[valid-type]
        "best",
        "direction that may answer; the other decodes along",
        Scope(both_directions=NO_PARTNER),
    )
    sb_rescore: float = option(
        0.0,
        "W: score finished hypotheses once more in both directions without "
        "interaction, and rank by score + W * (sum of both) / length penalty; 0: "
        "the search's score alone",
        Scope(both_directions="a model of one direction has no score in the other"),
    )
    sb_rescore_best: int = option(
        0,
        "N: --sb-rescore scores the N best of the pool once more, one of which is the "
        "answer; 0: the whole pool",
        Scope(both_directions="a model of one direction has no score in the other"),
    )
    sb_partner_noise: Optional[float] = option(
        None,
        "R: where both streams hold the same text, corrupt the inputs of "
        "each in training at a rate from U(0, R); default: 0",
        Scope(TRAINING, both_directions=NO_PARTNER),
    )
    sb_probe: int = option(
        0,
        "N: log every N updates how many bits a token each direction reads "
        "of the other (read_bits_*), on some validation text; 0: never",
        Scope(
            TRAINING,
            both_directions=NO_PARTNER,
            model="reads_across",
            described="two streams that read each other at every step",
        ),
    )
    sb_autocast: bool = option(
        False,
        "train with products in bfloat16 and weights in float32 "
        "(torch.autocast), faster on CPUs that have bfloat16 instructions, from "
        "some 500 channels on. Not beside --fp16, --bf16 and --amp",
        Scope(TRAINING, instead="--sb-bf16 decodes in bfloat16"),
    )
    sb_bf16: bool = option(
        False,
        "decode with bfloat16 weights, several times as fast on CPUs that "
        "have bfloat16 instructions; softmax and scores stay float32. A "
        "translation may then depend on its batch: of a Multi30k teacher's, 3 of "
        "1,000 differed between batches of 1 and of 32 (float32: none), and 65 "
        "from float32's. Not beside --fp16",
        Scope(DECODING, instead=NARROW_TRAINING),
    )
    sb_int8: bool = option(
        False,
        "decode on a CPU with 8-bit weights of the decoder's linear "
        "layers; the rest stays float32. Faster where weights are large, with "
        "bfloat16 instructions or not. Not beside --sb-bf16 or --fp16",
        Scope(DECODING, instead=NARROW_TRAINING),
    )
    sb_records: Optional[str] = option(
        None,
        "write a JSON line per sentence to this new file: the direction "
        "that won, and both directions' best hypotheses and scores",
        Scope(DECODING),
    )
    sb_trace: Optional[str] = option(
        None,
        "write a JSON line per sentence to this new file: all that both "
        "beams did, step by step, for sbnmt trace-page. Slow; for a "
        "few sentences",
        Scope(DECODING, both_directions="it shows how two directions meet"),
    )
    # what other groups say, so that it can be checked; no flags of their own
    sb_seed: int = II("common.seed")
    # (no bool, which fairseq would make of the reference itself: True)
    sb_fp16: Any = "${common.fp16}"
    sb_fairseq_bf16: Any = "${common.bf16}"
    sb_amp: Any = "${common.amp}"
    sb_store_ema: Any = "${ema.store_ema}"
    sb_disable_validation: Any = "${dataset.disable_validation}"
    sb_path: Optional[str] = II("common_eval.path")
    sb_restore_file: str = II("checkpoint.restore_file")
    sb_save_dir: str = II("checkpoint.save_dir")
    sb_finetune_from_model: Optional[str] = II("checkpoint.finetune_from_model")
    sb_continue_once: Optional[str] = II("checkpoint.continue_once")
    sb_reset_optimizer: Any = "${checkpoint.reset_optimizer}"


def task_config() -> type[SBTranslationConfig]:
    """Return the dataclass of all options: the task's and those of every family.

    It is another one where a family has been registered since.
    """
    return _joined((SBTranslationConfig, *TASK_OPTIONS.values()))


@cache
def _joined(bases: tuple[type, ...]) -> Any:
    own = {"__module__": __name__, "__doc__": SBTranslationConfig.__doc__}
    return make_dataclass("TaskConfig", (), bases=bases, namespace=own)
