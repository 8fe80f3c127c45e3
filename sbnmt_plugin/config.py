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

DIRECTIONS = {"both": (L2R, R2L), "l2r": (L2R,), "r2l": (R2L,)}


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
    sb_partner_noise: Optional[float] = field(
        default=None,
        metadata={
            "help": "R: where both streams hold the same text, corrupt the inputs of "
            "each in training at a rate from U(0, R); default: 0"
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
            "help": "phrase table of sbnmt phrase-table, by which the "
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
            "beams did, step by step, for sbnmt trace-page. Slow; for a "
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
    sb_reset_optimizer: Any = "${checkpoint.reset_optimizer}"
