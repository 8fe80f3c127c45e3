"""The Python interface to a trained model."""

from __future__ import annotations

import contextlib
import os
import re
import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

import torch
from fairseq import hub_utils
from fairseq.tasks import TASK_DATACLASS_REGISTRY, get_task
from torch import Tensor

from sbnmt_plugin.checkpoint_checks import check_checkpoints, check_interface
from sbnmt_plugin.layout import DEFAULT_BEAM
from sbnmt_plugin.numerics import NARROW
from sbnmt_plugin.task_options import KEY, TRAINING, Scope

MAX_TOKENS = 12000  # of a batch, if nothing is said: fairseq-generate's
WRITTEN = "sb_records", "sb_trace"  # files; a checkpoint says nothing of them
FAIRSEQ_ARGUMENTS = {  # of GeneratorHubInterface.generate, beside search options
    "verbose",
    "skip_invalid_size_inputs",
    "inference_step_args",
    "prefix_allowed_tokens_fn",
}


@contextlib.contextmanager
def keywords() -> Iterator[None]:
    """Name options in messages by the keywords of a call, not by flags.

    A caller is not told to leave lines out by a flag: :meth:`translate` has none.
    """
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        told = re.sub(r" \(--skip-[a-z-]+\)", "", str(error))
        flag = r"(?<![\w./-])--[a-z][a-z0-9-]*"
        told = re.sub(flag, lambda x: x[0][2:].replace("-", "_"), told)
        if told == str(error):  # perhaps of another type, made of more than a text
            raise
        raise type(error)(told) from error


class SBHubInterface(hub_utils.GeneratorHubInterface):
    """Hub interface of fairseq's; order is kept, empty lists and strings are fine."""

    def __init__(self, cfg: Any, task: Any, models: Any) -> None:
        super().__init__(cfg, task, models)
        self.bpe = task.build_bpe(cfg.bpe)

    def translate(
        self,
        sentences: Any,
        beam: int = DEFAULT_BEAM,
        verbose: bool = False,
        **kwargs: Any,
    ) -> list[str]:
        """Translate sentences.

        Args:
            sentences: texts in an iterable; a single text gives a single text.
            beam: k, over both directions.
            kwargs: generation options by fairseq's names (``lenpen=0.6``) and ours
                (``sb_answer="l2r"``).

        Raises:
            ValueError: something else than texts; a bad option; one by which there
                would be fewer answers than sentences.
        """
        if not isinstance(sentences, str):
            ordered = isinstance(sentences, Iterable)
            ordered = ordered and not isinstance(sentences, (dict, set))
            texts = list(sentences) if ordered else [sentences]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError(
                    "sentences must be a text or a list of texts, but is "
                    f"{reprlib.repr(sentences)} instead"
                )
            sentences = texts
        self._check_names(kwargs)
        if kwargs.get("skip_invalid_size_inputs"):
            raise ValueError(
                "skip_invalid_size_inputs must not be given to translate(), which "
                "answers every sentence: leave it out, and over-long sentences too"
            )
        return self.sample(sentences, beam=beam, nbest=1, verbose=verbose, **kwargs)

    def sample(
        self, sentences: Any, beam: int = DEFAULT_BEAM, *args: Any, **kwargs: Any
    ) -> Any:
        """Translate as fairseq does, with a beam that two directions can share."""
        return super().sample(sentences, beam, *args, **kwargs)

    def score(self, *_: Any, **options: Any) -> Any:
        """Refuse, with ValueError: the search scores no given texts."""
        raise ValueError("score() is not supported: use the scores of generate()")

    @keywords()
    def generate(
        self,
        tokenized_sentences: list[Tensor],
        beam: int = DEFAULT_BEAM,
        *args: Any,
        **kwargs: Any,
    ) -> list[list[dict[str, Any]]]:
        """Search for hypotheses as fairseq does; nothing in, nothing out.

        Args:
            kwargs: generation options; ``nbest`` says how many hypotheses, from the
                best, must be final (default: all that may answer: those of the beam,
                or the ones that ``sb_rescore_best`` names).
        """
        nbest = kwargs.pop("nbest", None)
        self._check_names(kwargs)
        if isinstance(tokenized_sentences, list) and not tokenized_sentences:
            return []
        with torch.no_grad():
            return super().generate(
                tokenized_sentences, beam, *args, nbest=nbest, **kwargs
            )

    def _check_names(self, kwargs: dict[str, Any]) -> None:
        self.task.check_names(set(kwargs) - FAIRSEQ_ARGUMENTS, "the Python API")


class Pretrained:
    """Loading of models in Python: it stands before fairseq's class."""

    @classmethod
    @keywords()
    def from_pretrained(
        cls,
        model_name_or_path: str | os.PathLike[str],
        checkpoint_file: str = "model.pt",
        data_name_or_path: str | os.PathLike[str] = ".",
        **kwargs: Any,
    ) -> SBHubInterface:
        """Load a trained model for :meth:`SBHubInterface.translate`.

        Args:
            model_name_or_path: folder that holds the checkpoint.
            checkpoint_file: its name; several, joined by ``:``, make an ensemble.
            data_name_or_path: folder with the dictionaries, absolute or relative
                to the checkpoint's if it begins with a dot.
            kwargs: settings to override, such as ``bpe="subword_nmt"``,
                ``bpe_codes=…`` and ``max_tokens`` (of a batch; the training's says
                nothing of the sentences that are to come).

        Raises:
            FileNotFoundError: no such folder or checkpoint.
            ValueError: a setting that nothing acts on; a checkpoint in place of its
                folder, a damaged one, or one that chooses what is read; two of
                different directions; two kinds of narrow numbers.
        """
        model_name_or_path = os.fspath(model_name_or_path)
        data_name_or_path = os.fspath(data_name_or_path)
        given = set(kwargs)
        written = {name: kwargs.pop(name, None) for name in WRITTEN}
        kwargs.setdefault("max_tokens", MAX_TOKENS)
        # a training says nothing of searches, nor is there validation
        for option in fields(TASK_DATACLASS_REGISTRY["sb_translation"]):
            phase = option.metadata.get(KEY, Scope(TRAINING)).phase
            if phase != TRAINING and option.name not in (*WRITTEN, "sb_direction"):
                kwargs.setdefault(option.name, option.default)
        kwargs.setdefault("eval_bleu", False)
        if sum(bool(kwargs.get(name)) for name in ("sb_bf16", "sb_int8", "fp16")) > 1:
            raise ValueError(NARROW)
        folders = {"model_name_or_path": model_name_or_path}
        if not data_name_or_path.startswith("."):
            folders["data_name_or_path"] = data_name_or_path
        for name, path in folders.items():
            if "://" not in path and not os.path.exists(path):
                raise FileNotFoundError(
                    f"{name} {path} does not exist: give the folder of the model and, "
                    "for data_name_or_path, the one with its dict.*.txt"
                )
        if model_name_or_path.endswith(".pt") and os.path.isfile(model_name_or_path):
            folder, name = os.path.split(model_name_or_path)
            raise ValueError(
                f"model_name_or_path must be a folder, but is {model_name_or_path}: "
                f"give {folder or '.'} and, as checkpoint_file, {name}"
            )
        if os.path.isdir(model_name_or_path):
            files = checkpoint_file.split(os.pathsep)
            paths = [os.path.join(model_name_or_path, x) for x in files]
            checkpoints = check_checkpoints(paths)
            settings = [each.settings for each in checkpoints]
            get_task("sb_translation").check_settings(given, settings, kwargs)
            for checkpoint in checkpoints:
                check_interface(checkpoint, kwargs)
        loaded = hub_utils.from_pretrained(
            model_name_or_path,
            checkpoint_file,
            data_name_or_path,
            archive_map={},  # no model is published yet
            **kwargs,
        )
        loaded["task"].cfg.update(written)  # of this process, not of the training
        return SBHubInterface(loaded["args"], loaded["task"], loaded["models"])
