"""Models and batches of the benchmark: made up, or a recipe's trained ones."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, utils
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture

from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.layout import L2R, NAMES
from sbnmt_plugin.numerics import leave_cudnn_out
from sbnmt_plugin.register import register
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.tools.benchmark.cases import SIZES, Case
from sbnmt_plugin.tools.recipes import systems

SEED = 1
Batch = dict[str, Any]  # fairseq's
# gives the best hypothesis of each sentence of a batch: its tokens, </s> included
Search = Callable[[Batch], list[list[int]]]


@dataclass(frozen=True)
class Spec:
    """Properties that the compared models share.

    Attributes:
        size: a name of :data:`cases.SIZES`.
        vocabulary: words of the joined dictionary, beside fairseq's four and the tags.
        device: ``cpu`` or ``cuda``.
        work: a recipe's folder, whose trained models are taken instead.
    """

    size: str = "base"
    vocabulary: int = 32000
    device: str = "cpu"
    work: str | None = None


@dataclass
class Loaded:
    """A model, its dictionaries, and the task of a trained one."""

    model: Any
    words: Dictionary  # the target's
    source: Dictionary
    task: Any = None


def model_options(size: str, **others: Any) -> Namespace:
    """Return fairseq's options for a size; all embeddings are one matrix."""
    channels, inner, layers, heads = SIZES[size]
    sides: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        sides |= {
            f"{side}_embed_dim": channels,
            f"{side}_ffn_embed_dim": inner,
            f"{side}_layers": layers,
            f"{side}_attention_heads": heads,
        }
    return Namespace(**sides, share_all_embeddings=True, **others)


def load(spec: Spec, kind: str) -> Loaded:
    """Return the model of a kind; a recipe's has its task, to load the test set.

    Args:
        kind: ``both`` directions, ``alone``, which is the same with λ = 0, or ``l2r``,
            fairseq's Transformer.
    """
    leave_cudnn_out()  # of fairseq's too: it would time a plan for each new shape
    if spec.work is not None:
        work = Path(spec.work)
        path = trained_model(work, kind)
        register()
        (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(
            [str(path)], arg_overrides={"data": str(work / "data"), "eval_bleu": False}
        )
        known = task.target_dictionary, task.source_dictionary
        return Loaded(model.to(spec.device), *known, task)
    words = Dictionary()
    for word in (*(f"w{number}" for number in range(spec.vocabulary)), *TAGS):
        words.add_symbol(word)
    task = Namespace(source_dictionary=words, target_dictionary=words)
    torch.manual_seed(SEED)
    options = model_options(spec.size)
    if kind in NAMES:
        base_architecture(options)
        model = TransformerModel.build_model(options, task)
    else:
        options.sb_lambda = 0.0 if kind == ALONE else None
        model = SBTransformerModel.build_model(options, task)
    return Loaded(model.to(spec.device), words, words)


ALONE = "alone"
# kind -> rows of a recipe that may have its model, the first that there is
ROWS = {"both": systems.OURS, ALONE: ("sb-lambda0",), NAMES[L2R]: ("teacher-l2r",)}


def trained_model(work: Path, kind: str) -> Path:
    """Return the path of a recipe's checkpoint.

    Raises:
        FileNotFoundError: it has none.
    """
    paths = [work / row / "model.pt" for row in ROWS[kind]]
    found = [path for path in paths if path.is_file()]
    if not found:
        names = " or ".join(map(str, paths))
        raise FileNotFoundError(
            f"--work must be a finished recipe's folder, but {names} does not exist"
        )
    return found[0]


def made_up_batch(words: Dictionary, shape: tuple[int, int]) -> Batch:
    """Make random source sentences of one length.

    Args:
        shape: sentences, and tokens of each, ``</s>`` counted.
    """
    generator = torch.Generator().manual_seed(SEED)
    last = len(words) - len(TAGS)
    tokens = torch.randint(words.nspecial, last, shape, generator=generator)
    tokens[:, -1] = words.eos()
    lengths = torch.full(shape[:1], shape[1])
    sources = {"src_tokens": tokens, "src_lengths": lengths}
    return {"id": torch.arange(shape[0]), "net_input": sources}


def batches_of(loaded: Loaded, case: Case, device: str) -> list[Batch]:
    """Return a batch of made-up sentences, or the batches of a recipe's test set."""
    if case.length is None:
        task = loaded.task
        task.load_dataset("test")
        found = task.get_batch_iterator(
            dataset=task.dataset("test"),
            max_sentences=case.batch,
            max_positions=(1000, 1000),
            num_workers=0,
        ).next_epoch_itr(shuffle=False)
    else:
        found = [made_up_batch(loaded.words, (case.batch, case.length))]
    return [utils.apply_to_sample(lambda x: x.to(device), sample) for sample in found]
