"""Models, task and search, ready to translate lists of sentences."""

from __future__ import annotations

import argparse
import ast
from functools import partial
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from sbnmt_plugin.fairseq_options import LINES
from sbnmt_plugin.given_options import refuse_typed
from sbnmt_plugin.hub import MAX_TOKENS
from sbnmt_plugin.register import register
from sbnmt_plugin.task_options import flag_of
from sbnmt_plugin.tools.command_names import PLUGIN
from sbnmt_plugin.tools.launch import gives


class Translator:
    """Models, task and search, ready to translate lists of sentences.

    Args:
        arguments: fairseq-generate's command line.
        nbest: hypotheses of a sentence that are wanted, None for all of the beam; the
            search is done as soon as they are sure.
    """

    def __init__(self, arguments: list[str], nbest: int | None = 1) -> None:
        register()
        for flag, value in ("--user-dir", str(PLUGIN)), ("--task", "sb_translation"):
            if not gives(arguments, flag):
                arguments = [*arguments, flag, value]
        parser = options.get_generation_parser()
        refusing = partial(refuse_typed, command=LINES)
        args = options.parse_args_and_arch(parser, arguments, modify_parser=refusing)
        cfg = convert_namespace_to_omegaconf(args)
        refuse_ignored(cfg)
        utils.import_user_module(cfg.common)
        self.cfg, self.nbest = cfg, nbest
        self.max_tokens = cfg.dataset.max_tokens or MAX_TOKENS
        self.task = tasks.setup_task(cfg.task)
        self.models, _ = checkpoint_utils.load_model_ensemble(
            utils.split_paths(cfg.common_eval.path),
            arg_overrides=ast.literal_eval(cfg.common_eval.model_overrides),
            task=self.task,
        )
        self.cuda = torch.cuda.is_available() and not cfg.common.cpu
        for model in self.models:
            if cfg.common.fp16:
                model.half()
            if self.cuda:
                model.cuda()
            model.prepare_for_inference_(cfg)
        search = argparse.Namespace(**{**cfg.generation, "nbest": nbest})
        self.generator = self.task.build_generator(self.models, search)
        self.max_positions = utils.resolve_max_positions(
            self.task.max_positions(), *[m.max_positions() for m in self.models]
        )

    def translate(self, lines: list[str]) -> tuple[dict[int, Any], dict[int, str]]:
        """Translate sentences.

        Returns:
            hypotheses: place in ``lines`` -> best hypothesis.
            skipped: place -> reason.
        """
        tokens, lengths = self.task.get_interactive_tokens_and_lengths(
            lines, lambda line: line
        )
        dataset = self.task.build_dataset_for_inference(tokens, lengths)
        limit = min(self.max_positions[0], self.max_tokens)
        reason = f"at most {limit} are allowed"
        if self.max_tokens < self.max_positions[0]:
            reason += ", as many as --max-tokens says"
        skipped = {
            i: f"{int(n)} tokens, {reason}" for i, n in enumerate(lengths) if n > limit
        }
        found: dict[int, Any] = {}
        if len(skipped) == len(lines):
            return found, skipped
        iterator = self.task.get_batch_iterator(
            dataset,
            max_tokens=self.max_tokens,
            max_sentences=self.cfg.dataset.batch_size,
            max_positions=self.max_positions,
            ignore_invalid_inputs=True,
            disable_iterator_cache=True,
        )
        for batch in self.grouped(iterator.frozen_batches):
            sample = dataset.collater([dataset[i] for i in batch])
            for index, result in self._generate(sample):
                if isinstance(result, str):
                    skipped[index] = result
                else:
                    found[index] = result
        return found, skipped

    def grouped(self, batches: Any) -> Any:
        """Return the batches, lists of sentences, as they are to be translated."""
        return batches

    def _generate(self, batch: dict[str, Any]) -> list[tuple[int, Any]]:
        """Search a batch; where it fails, sentence by sentence.

        Returns:
            id and best hypothesis, or the reason for which there is none.
        """
        ids = batch["id"].tolist()
        if self.cuda:
            batch = utils.move_to_cuda(batch)
        try:
            # errors name no id: callers number sentences in their own way
            bare = {key: value for key, value in batch.items() if key != "id"}
            return list(zip(ids, self.best(bare)))
        except (FloatingPointError, torch.OutOfMemoryError) as error:
            if len(ids) == 1:
                return [(ids[0], str(error).split("\n")[0])]
        pairs = []
        for row in range(len(ids)):
            net_input = {k: v[row : row + 1] for k, v in batch["net_input"].items()}
            one = {"id": batch["id"][row : row + 1], "net_input": net_input}
            pairs += self._generate(one)
        return pairs

    def search(self, batch: dict[str, Any]) -> list[list[dict[str, Any]]]:
        """Return every sentence's hypotheses, best first."""
        return self.task.inference_step(self.generator, self.models, batch)

    def best(self, batch: dict[str, Any]) -> list[dict[str, Any]]:
        """Return every sentence's answer."""
        return [hypotheses[0] for hypotheses in self.search(batch)]

    def text(self, hypothesis: Any) -> str:
        """Return the tokens of a hypothesis as text, subwords not joined."""
        return self.task.target_dictionary.string(hypothesis["tokens"])


def refuse_ignored(cfg: Any) -> None:
    """Refuse options of fairseq-generate that mean nothing here.

    Raises:
        ValueError: with the flag.
    """
    if cfg.common_eval.path is None:
        raise ValueError("--path must name the model's checkpoint")
    for path in utils.split_paths(cfg.common_eval.path):
        if not Path(path).is_file():
            raise FileNotFoundError(f"--path {path} does not exist")
    for name in "sb_records", "sb_trace":
        if getattr(cfg.task, name) is not None:
            raise ValueError(
                f"{flag_of(name)} is not supported by {LINES}: use fairseq-generate"
            )
