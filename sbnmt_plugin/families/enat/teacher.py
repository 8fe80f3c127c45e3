"""The teacher that scores ENAT's candidates of different lengths: ``--nat-teacher``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairseq import checkpoint_utils
from torch import Tensor

from sbnmt_plugin.checkpoint_checks import check_checkpoints, check_interface
from sbnmt_plugin.network.fairseq_decoder import searchable
from sbnmt_plugin.network.protocol import Forced
from sbnmt_plugin.search.options import Symbols
from sbnmt_plugin.search.score_texts import score_texts
from sbnmt_plugin.search.scorer import Scorer
from sbnmt_plugin.task_options import caller_files

FLAG = "--nat-teacher"


class Teacher:
    """Log-probabilities of given texts, by a Transformer that writes L2R.

    It computes in the numbers of its checkpoint, whatever those of the other model are.

    Args:
        model: whose decoder scores texts: see :class:`protocol.Forced`.
        symbols: special ids; ``</s>`` also starts its texts.

    Raises:
        ValueError: another kind of model.
    """

    def __init__(self, model: Any, symbols: Symbols) -> None:
        self.model = model.eval()
        self.symbols = replace(symbols, starts=(symbols.eos,))
        if not isinstance(searchable(self.model), Forced):
            raise ValueError(
                f"{FLAG} must be a Transformer of --sb-direction l2r, which scores a "
                f"whole text at once, but is {type(model).__name__}: choose another"
            )

    def __call__(
        self, net_input: dict[str, Tensor], tokens: Tensor, temperature: float = 1.0
    ) -> Tensor:
        """Score all words, (BK, T) in float64; 0 at padding.

        Args:
            net_input: fairseq's, of B sentences.
            tokens: (BK, T) K texts a sentence, ``</s>`` last, padded on the right.
            temperature: by which logits are divided.
        """
        source = net_input["src_tokens"]
        self.model.to(source.device)
        own = {name: net_input[name] for name in ("src_tokens", "src_lengths")}
        pad, beam = self.symbols.pad, len(tokens) // len(source)
        texts = [tuple(t for t in row if t != pad) for row in tokens.tolist()]
        streams = [
            [(text, 0) for text in texts[first : first + beam]]
            for first in range(0, len(texts), beam)
        ]
        scorers = [Scorer.encode(self.model, own)]
        device = source.device
        found = score_texts(scorers, streams, self.symbols, device, temperature)
        return found.flatten(0, 1)


def load_teacher(path: str, task: Any, symbols: Symbols) -> Teacher:
    """Load the teacher of a checkpoint, on the data of a task of ours.

    Args:
        path: of the checkpoint.

    Raises:
        FileNotFoundError, ValueError: a damaged file; a model of another task,
            direction, family or dictionary.
    """
    (checkpoint,) = check_checkpoints([path], f"({FLAG})")
    check_interface(checkpoint, ("tokenizer", "bpe"))  # neither is used
    cfg = task.cfg
    settings = {
        "data": cfg.data,
        "source_lang": cfg.source_lang,
        "target_lang": cfg.target_lang,
        "eval_bleu": False,
        **dict.fromkeys(caller_files()),
    }
    loaded = checkpoint_utils.load_model_ensemble_and_task([path], settings)
    (model,), _, trained = loaded
    if (direction := str(trained.cfg.sb_direction)) != "l2r":
        raise ValueError(
            f"{FLAG} {path} must be a model of --sb-direction l2r, but is one of "
            f"{direction}: choose another"
        )
    return Teacher(model, symbols)
