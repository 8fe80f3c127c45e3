"""ENAT's options of the task: the phrase table of its input, and its teacher."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

from torch.nn.utils.rnn import pad_sequence

from sbnmt_plugin.task_options import Scope, TaskOptions, option, register_options
from sbnmt_plugin.training.phrase_table import PhraseTable


class Lookup:
    """Adds ``lookup_tokens`` (B, Z) to a batch: ``</s>`` last, padded on the right.

    Args:
        path: of the phrase table.
        source: dictionary, whose ``</s>`` and padding are the target's, too.
        target: dictionary.
    """

    def __init__(self, path: str, source: Any, target: Any) -> None:
        self.table = PhraseTable.load(path).with_ids(source, target)
        self.pad, self.eos = source.pad(), source.eos()

    def __call__(self, net_input: dict[str, Any]) -> dict[str, Any]:
        """Complete fairseq's ``net_input``, which has ``src_tokens`` (B, S)."""
        if "lookup_tokens" in net_input:
            return net_input
        tokens, skipped = net_input["src_tokens"], (self.pad, self.eos)
        texts = [[x for x in row if x not in skipped] for row in tokens.tolist()]
        found = [tokens.new_tensor([*self.table.lookup(x), self.eos]) for x in texts]
        return {**net_input, "lookup_tokens": pad_sequence(found, True, self.pad)}


@register_options
@dataclass
class ENATTaskOptions(TaskOptions):
    """Files that training and search of an ``enat_transformer`` read."""

    enat_table: Optional[str] = option(
        None,
        "phrase table of sbnmt phrase-table, which translates the sources for "
        "--enat-input phrase",
        Scope(
            model="reads_lookup",
            described="an enat_transformer of --enat-input phrase, and nothing "
            "here reads it",
            names_file=True,
        ),
    )
    nat_teacher: Optional[str] = option(
        None,
        "checkpoint of a Transformer of --sb-direction l2r, which chooses among "
        "translations of several lengths",
        Scope(
            model="writes_at_once",
            described="an enat_transformer, whose words are written at once",
            names_file=True,
        ),
    )

    @classmethod
    def completion(
        cls, cfg: Any, source: Any, target: Any
    ) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
        """See :meth:`task_options.TaskOptions.completion`: look the sources up."""
        path = cfg.enat_table
        return None if path is None else Lookup(path, source, target)
