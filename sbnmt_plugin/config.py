"""The options of task ``sb_translation``, its own and those of the families."""

from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks.translation import TranslationConfig
from omegaconf import II

from sbnmt_plugin.layout import L2R, PAIRINGS, R2L
from sbnmt_plugin.search.arguments import ANSWERS
from sbnmt_plugin.search.lengths import FORMULAS
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
        "train and decode both streams, or that of a teacher; l2r is for all systems "
        "of one direction",
    )
    sb_pairing: ChoiceEnum(tuple(PAIRINGS)) = option(  # type: ignore[valid-type]
        "rank",
        "which hypothesis of the other direction a hypothesis attends to: the one of "
        "the same rank, or the best",
        Scope(both_directions=NO_PARTNER),
    )
    sb_length_penalty: ChoiceEnum(tuple(FORMULAS)) = option(  # type: ignore[valid-type]
        "gnmt",
        "divide the score of n tokens by ((5 + n) / 6) ** lenpen (gnmt, the paper's) "
        "or by n ** lenpen (power, fairseq's)",
    )
    sb_stop: ChoiceEnum(STOPS) = option(  # type: ignore[valid-type]
        "horizon",
        "when a sentence is done. bound: nothing can change the --nbest answers, what "
        "--sb-rescore scores, or the pool of --sb-trace. horizon: the same, but once "
        "--beam hypotheses have finished, the last of them with n tokens, nothing "
        "longer than 1.25 n + 5 is sought. first: --beam hypotheses have finished, as "
        "in fairseq, and only a direction's best candidates may finish (a teacher's "
        "--beam 1 is greedy search)",
    )
    sb_answer: ChoiceEnum(ANSWERS) = option(  # type: ignore[valid-type]
        "best",
        "which direction may answer. The other decodes along",
        Scope(both_directions=NO_PARTNER),
    )
    sb_rescore: float = option(
        0.0,
        "W: score finished hypotheses again in both directions without interaction, "
        "and rank by score + W * (sum of both) / length penalty. 0: no rescoring",
        Scope(both_directions="a model of one direction has no score in the other"),
    )
    sb_rescore_best: int = option(
        0,
        "N: rescore only the N best hypotheses, one of which is the answer. N is at "
        "least --nbest. 0: all",
        Scope(both_directions="a model of one direction has no score in the other"),
    )
    sb_partner_noise: Optional[float] = option(
        None,
        "R: corrupt the inputs of both streams in training, at a rate drawn from "
        "U(0, R), where they hold the same text. Without it there is no noise",
        Scope(TRAINING, both_directions=NO_PARTNER),
    )
    sb_probe: int = option(
        0,
        "N: log every N updates how many bits a token each direction reads of the "
        "other (read_bits_*), on some validation text. Take a multiple of "
        "--log-interval. 0: never",
        Scope(
            TRAINING,
            both_directions=NO_PARTNER,
            model="reads_across",
            described="two streams that read each other at every step",
        ),
    )
    sb_autocast: bool = option(
        False,
        "train with products in bfloat16 and weights in float32 (torch.autocast). "
        "It is faster on CPUs with bfloat16 instructions, from some 500 channels on. "
        "Not with --fp16, --bf16 or --amp",
        Scope(TRAINING, instead="--sb-bf16 decodes in bfloat16"),
    )
    sb_bf16: bool = option(
        False,
        "decode with bfloat16 weights. Softmax and scores stay float32. It is faster "
        "on CPUs with bfloat16 instructions. Some translations change, and a "
        "translation may depend on its batch. Not with --fp16",
        Scope(DECODING, instead=NARROW_TRAINING),
    )
    sb_int8: bool = option(
        False,
        "decode on a CPU with 8-bit weights of the decoder's linear layers. The rest "
        "stays float32. It is faster where weights are large. Some translations "
        "change, and a translation may depend on its batch. Not with --sb-bf16 or "
        "--fp16",
        Scope(DECODING, instead=NARROW_TRAINING),
    )
    sb_records: Optional[str] = option(
        None,
        "write a JSON line per sentence to this new file: the direction that won, and "
        "both directions' best hypotheses and scores",
        Scope(DECODING),
    )
    sb_trace: Optional[str] = option(
        None,
        "write a JSON line per sentence to this new file: every step of both beams, "
        "for sbnmt trace-page. It is slow, so use it for a few sentences",
        Scope(DECODING, both_directions="it shows how two directions meet"),
    )
    # what other groups say, so that it can be checked; no flags of their own
    sb_seed: int = II("common.seed")
    sb_path: Optional[str] = II("common_eval.path")
    sb_restore_file: str = II("checkpoint.restore_file")
    sb_save_dir: str = II("checkpoint.save_dir")
    sb_checkpoint_suffix: str = II("checkpoint.checkpoint_suffix")
    sb_finetune_from_model: Optional[str] = II("checkpoint.finetune_from_model")
    sb_continue_once: Optional[str] = II("checkpoint.continue_once")
    # (no bool, which fairseq would make of the reference itself: True)
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
