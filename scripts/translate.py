#!/usr/bin/env python3
"""Translate a text with the teachers, shard by shard, so that a killed run continues.

    translate.py data --path teacher/checkpoint_best.pt --sb-direction l2r \
        --input text/train.en --output pseudo/l2r.tsv --beam 4 --lenpen 0.6

INPUT holds one sentence a line, as binarised (BPE applied).  The result has a line
"id<TAB>score<TAB>translation" per sentence, id counting input lines from 0, ids in
order; the score is in natural logarithms.  A source that is over-long or that fails
has no line, and is listed with its reason in OUTPUT.skipped.

The work is cut into shards of --shard-size lines, kept in OUTPUT.shards.  Several
processes, on several machines if the folder is shared, divide them by --of N
--worker I (0 … N - 1); the one that finds all shards done writes OUTPUT.  OUTPUT.shards
also says from what OUTPUT was made: the same command has then nothing to do, another
is refused.  Any other option is one of fairseq-generate's or of the task's.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from texts import new_file, read_lines, refuse_tags, run
from tqdm import tqdm

WHOLE = {"id", "score", "text"}
PLUGIN = Path(__file__).resolve().parent.parent / "sbnmt_plugin"


class Translator:
    """Models, task and search, ready to translate lists of sentences.

    Args:
        arguments: fairseq-generate's command line.
    """

    def __init__(self, arguments: list[str]) -> None:
        for flag, value in ("--user-dir", str(PLUGIN)), ("--task", "sb_translation"):
            if not any(word.split("=")[0] == flag for word in arguments):
                arguments = [*arguments, flag, value]
        parser = options.get_generation_parser()
        cfg = convert_namespace_to_omegaconf(
            options.parse_args_and_arch(parser, arguments)
        )
        refuse_ignored(cfg)
        utils.import_user_module(cfg.common)
        self.cfg = cfg
        self.max_tokens = cfg.dataset.max_tokens or 12000  # fairseq-generate's
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
        self.generator = self.task.build_generator(self.models, cfg.generation)
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
        limit = self.max_positions[0]
        skipped = {
            i: f"{int(n)} tokens, at most {limit} are allowed"
            for i, n in enumerate(lengths)
            if n > limit
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
        """The batches, lists of sentences, as they are to be translated."""
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
            return list(zip(ids, self.best(batch)))
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
        """Every sentence's hypotheses, best first."""
        return self.task.inference_step(self.generator, self.models, batch)

    def best(self, batch: dict[str, Any]) -> list[dict[str, Any]]:
        """Every sentence's answer."""
        return [hypotheses[0] for hypotheses in self.search(batch)]

    def text(self, hypothesis: Any) -> str:
        """Tokens of a hypothesis as text, subwords not joined."""
        return self.task.target_dictionary.string(hypothesis["tokens"].cpu())


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
    given = {
        "--prefix-size": cfg.generation.prefix_size > 0,
        "--nbest": cfg.generation.nbest > 1,
        "--print-alignment": cfg.generation.print_alignment is not None,
        "--sb-records": getattr(cfg.task, "sb_records", None) is not None,
        "--sb-trace": getattr(cfg.task, "sb_trace", None) is not None,
        "--distributed-world-size": cfg.distributed_training.distributed_world_size > 1,
    }
    for flag, set_by_user in given.items():
        if set_by_user:
            raise ValueError(
                f"{flag} is not supported here, where one line per sentence is "
                "written: use fairseq-generate for it, or --of and --worker to shard"
            )


def write_shard(path: Path, start: int, lines: list[str], make: Translator) -> None:
    """Translate a shard into JSON lines; the file appears when all is written."""
    found, skipped = make.translate(lines)
    with new_file(path) as file:
        for i in range(len(lines)):
            record: dict[str, Any] = {"id": start + i}
            if i in found:
                record["score"] = float(found[i]["score"])
                record["text"] = make.text(found[i])
            else:
                record["skipped"] = skipped.get(i, "fairseq left it out")
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_shard(path: Path) -> list[dict[str, Any]]:
    """The records of a shard.

    Raises:
        ValueError: it is not as it was written.
    """
    try:
        records = [json.loads(line) for line in read_lines(path)]
        if all(r.keys() >= {"id", "skipped"} or r.keys() >= WHOLE for r in records):
            return records
    except (ValueError, AttributeError):
        pass  # no JSON, or no records
    raise ValueError(
        f"{path} must hold a JSON record per line, as it was written, but is damaged: "
        "remove it and repeat the command"
    )


def merge(shards: list[Path], count: int, output: Path) -> tuple[int, int]:
    """Join all shards, checking that every id is there exactly once, in order.

    Returns:
        How many sentences were translated, and how many skipped.
    """
    records = [record for path in shards for record in read_shard(path)]
    ids = [record["id"] for record in records]
    if ids != list(range(count)):
        raise ValueError(
            f"{shards[0].parent} must hold the ids 0 … {count - 1} once each, in "
            f"order, but does not: remove the folder and translate again"
        )
    done = [record for record in records if "text" in record]
    skipped = [record for record in records if "skipped" in record]
    if not done:
        reason = skipped[0]["skipped"]
        raise ValueError(
            f"none of the {count} sentences could be translated, the first because of: "
            f"{reason}; remove {shards[0].parent} and try again with other options"
        )
    with new_file(f"{output}.skipped") as file:
        for record in skipped:
            file.write(f"{record['id']}\t{record['skipped']}\n")
    with new_file(output) as file:
        for record in done:
            file.write(f"{record['id']}\t{record['score']:.6f}\t{record['text']}\n")
    return len(done), len(skipped)


def describe_job(lines: list[str], arguments: list[str]) -> dict[str, Any]:
    """What an output depends on: input, options, models."""
    files = [
        Path(p) for word in arguments for p in word.split(":") if p.endswith(".pt")
    ]
    return {
        "input sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        "options": arguments,
        "models": {str(p): p.stat().st_mtime_ns for p in files if p.exists()},
    }


def check_same_job(output: Path, folder: Path, job: dict[str, Any]) -> None:
    """What is there already, shards or a whole output, must be of the same job.

    Raises:
        ValueError: it has been begun with others, or nobody can tell.
    """
    path = folder / "job.json"
    # in this order, since another worker writes its job before its first shard
    begun = output.exists() or any(folder.glob("*.jsonl"))
    if not path.exists():
        if begun:
            raise ValueError(
                f"{output} has been begun or written, but {path}, which says from "
                f"what, is missing: remove {output} and {folder} to translate anew"
            )
        return
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        known = None
    if known != job:
        raise ValueError(
            f"{output} was begun with another input, model or other options, or {path} "
            f"is damaged: remove {output} and {folder} to translate anew, or repeat "
            "the first command to continue"
        )


def job_parser(description: str | None) -> argparse.ArgumentParser:
    """Options of every command that translates shard by shard."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--input", required=True, help="text, one sentence a line")
    parser.add_argument("--output", required=True, help="file to write")
    parser.add_argument("--shard-size", type=int, default=2000, help="lines per shard")
    parser.add_argument("--of", type=int, default=1, help="how many workers there are")
    parser.add_argument("--worker", type=int, default=0, help="which one this is")
    return parser


def run_job(
    args: argparse.Namespace, words: list[str], make: Callable[[], Translator]
) -> None:
    """Translate what is missing of the input, and join all shards if none is.

    Args:
        args: of :func:`job_parser`.
        words: all that decides the result beside the input, to be the same on resuming.
        make: loads the models; it is called only if there is something to do.
    """
    if not 0 <= args.worker < args.of:
        raise ValueError(f"--worker must be in 0 … {args.of - 1}, but is {args.worker}")
    if args.shard_size < 1:
        raise ValueError(f"--shard-size must be ≥ 1, but is {args.shard_size}")
    lines = read_lines(args.input)
    if not lines:
        raise ValueError(f"--input {args.input} must have lines, but is empty")
    refuse_tags(args.input, lines)
    output = Path(args.output)
    if output.is_dir():
        raise ValueError(f"--output {output} must be a file, but is a folder")
    folder = Path(f"{output}.shards")
    job = describe_job(lines, [*words, f"--shard-size={args.shard_size}"])
    check_same_job(output, folder, job)
    if output.exists():
        print(f"{output} is already written: nothing to do", file=sys.stderr)
        return
    starts = list(range(0, len(lines), args.shard_size))
    shards = [folder / f"{number:05d}.jsonl" for number in range(len(starts))]
    mine = [
        n for n in range(args.worker, len(starts), args.of) if not shards[n].exists()
    ]
    if mine:
        translator = make()  # first: it refuses bad options
        with new_file(folder / "job.json") as file:
            json.dump(job, file, indent=1)
        for n in tqdm(mine, desc=f"{output.name}: shards", unit="shard"):
            piece = lines[starts[n] : starts[n] + args.shard_size]
            write_shard(shards[n], starts[n], piece, translator)
    if all(shard.exists() for shard in shards):
        done, skipped = merge(shards, len(lines), output)
        print(f"{output}: {done} translated, {skipped} skipped", file=sys.stderr)
    else:
        print(f"{output}: this worker is done, others are not yet", file=sys.stderr)


def main() -> None:
    args, others = job_parser(__doc__).parse_known_args()
    run_job(args, others, lambda: Translator(others))


if __name__ == "__main__":
    run(main)
