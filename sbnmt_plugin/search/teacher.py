"""A teacher that scores what a parallel search has written: ``--nat-teacher``."""

from __future__ import annotations

from typing import Any

import torch
from fairseq import checkpoint_utils
from torch import Tensor

from sbnmt_plugin.checkpoint_checks import check_checkpoints, check_interface
from sbnmt_plugin.layout import Layout, live_places
from sbnmt_plugin.network.fairseq_decoder import searchable
from sbnmt_plugin.network.protocol import Forced

FLAG = "--nat-teacher"


class Teacher:
    """Log-probabilities of given texts, by a Transformer that writes L2R.

    In the numbers of its checkpoint, whatever those of the model are that it helps.

    Args:
        model: whose decoder scores texts: see :class:`protocol.Forced`.
        end: ``</s>``, which also starts its texts.
        padding: id.

    Raises:
        ValueError: another kind of model.
    """

    def __init__(self, model: Any, end: int, padding: int) -> None:
        self.model = model.eval()
        self.end, self.padding = end, padding
        if not isinstance(searchable(self.model), Forced):
            raise ValueError(
                f"{FLAG} must be a Transformer of --sb-direction l2r, which scores a "
                f"whole text at once, but is {type(model).__name__}: choose another"
            )

    def __call__(
        self, net_input: dict[str, Tensor], tokens: Tensor, temperature: float = 1.0
    ) -> Tensor:
        """Log-probabilities of all words, (BK, T); 0 at padding.

        Args:
            net_input: fairseq's, of B sentences.
            tokens: (BK, T) K texts a sentence, ``</s>`` last, padded on the right.
            temperature: by which logits are divided.
        """
        source = net_input["src_tokens"]
        self.model.to(source.device)
        names = "src_tokens", "src_lengths"
        own = {name: net_input[name] for name in names}
        real = tokens.ne(self.padding)
        start = torch.full_like(tokens[:, :1], self.end)
        inputs = torch.cat([start, tokens[:, :-1]], 1).masked_fill(~real, self.padding)
        live = live_places(real)
        decoder: Any = searchable(self.model)
        found: Tensor = decoder.log_probabilities(
            inputs,
            tokens,
            live,
            Layout(directions=1, beam=len(tokens) // len(source)),
            self.model.encoder.forward_torchscript(own),
            temperature,
        )
        grid: Tensor = found.new_zeros(tokens.numel()).index_copy(0, live, found)
        return grid.view(tokens.t().shape).t()


def load_teacher(path: str, task: Any) -> Teacher:
    """The teacher of a checkpoint, on the data of a task of ours.

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
        "enat_table": None,
        "nat_teacher": None,
    }
    loaded = checkpoint_utils.load_model_ensemble_and_task([path], settings)
    (model,), _, trained = loaded
    if (direction := str(trained.cfg.sb_direction)) != "l2r":
        raise ValueError(
            f"{FLAG} {path} must be a model of --sb-direction l2r, but is one of "
            f"{direction}: choose another"
        )
    return Teacher(model, task.tgt_dict.eos(), task.tgt_dict.pad())
