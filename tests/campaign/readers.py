"""Readers of files that somebody may have damaged, with a whole file for each."""

from __future__ import annotations

import copy
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import options
from fairseq.binarizer import FileBinarizer, VocabularyDatasetBinarizer
from fairseq.data import Dictionary, data_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tokenizer import tokenize_line

from campaign.subjects import RECIPE, SIZES, Stage
from sbnmt_plugin.checkpoints import read_checkpoint
from sbnmt_plugin.register import register
from sbnmt_plugin.task import SBTranslationTask
from sbnmt_plugin.tools import jobs, translations
from sbnmt_plugin.tools.benchmark.results import begun
from sbnmt_plugin.tools.command import child_environment
from sbnmt_plugin.tools.command_names import PLUGIN
from sbnmt_plugin.tools.commands.aer import read_gold
from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.phrase_extraction import linked_sentences
from sbnmt_plugin.tools.recipes import costs
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.work_folder import ModelRecord, check_recipe
from sbnmt_plugin.tools.report import traces
from sbnmt_plugin.tools.report.records import read_winners
from sbnmt_plugin.tools.results.sweep import Sweep
from sbnmt_plugin.tools.subwords import read_codes
from sbnmt_plugin.tools.text import read_lines, write_lines
from sbnmt_plugin.training.checksums import NAME
from sbnmt_plugin.training.phrase_table import PhraseTable

CODES = "#version: 0.2\na b\nab é</w>\n".encode()


class DataFolder:
    """A data folder as binarise writes it, and the same without checksums.

    Args:
        folder: to write to.
        seed: of the texts.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        stage = Stage(folder / "stage", seed)
        target = read_lines(stage.texts / "train.de")
        write_lines(stage.texts / "train.r2l", (f"{line} X" for line in target))
        self.folders = {True: folder / "summed", False: folder / "plain"}
        environment = {**os.environ, **child_environment()}
        words = stage.binarise(self.folders[True])
        subprocess.run(words, check=True, env=environment, capture_output=True)
        (self.folders[True] / "preprocess.log").unlink()
        shutil.copytree(self.folders[True], self.folders[False])
        (self.folders[False] / NAME).unlink()
        self.prefix = folder / "strange"
        self.settings = {k: settings_of(f) for k, f in self.folders.items()}

    def files(self, summed: bool) -> list[Path]:
        return sorted(self.folders[summed].iterdir())

    def load(self, summed: bool) -> Any:
        """Return everything that a training reads: dictionaries and sentences."""
        task = SBTranslationTask.setup_task(copy.deepcopy(self.settings[summed]))
        found: list[Any] = [task.src_dict.symbols, task.tgt_dict.symbols]
        for split in SIZES:
            task.load_dataset(split)
            for item in map(task.datasets[split].__getitem__, range(SIZES[split])):
                tensors = {k: v for k, v in item.items() if torch.is_tensor(v)}
                found.append({name: value.tolist() for name, value in tensors.items()})
        return found

    def outcome(self, summed: bool) -> Any:
        """Return the result of :meth:`load`, or its error."""
        try:
            return self.load(summed)
        except Exception as error:
            return error

    def there_and_back(self, lines: list[str]) -> list[list[str]]:
        """Return tokens of lines that fairseq has binarised, as they are read back."""
        write_lines(self.prefix, lines)
        dictionary = Dictionary()
        Dictionary.add_file_to_dictionary(
            str(self.prefix), dictionary, tokenize_line, num_workers=1
        )
        dictionary.finalize(padding_factor=1)
        FileBinarizer.multiprocess_dataset(
            str(self.prefix),
            "mmap",
            VocabularyDatasetBinarizer(dictionary, append_eos=True),
            f"{self.prefix}.out",
            vocab_size=len(dictionary),
            num_workers=1 + len(lines) % 2,
        )
        read = data_utils.load_indexed_dataset(f"{self.prefix}.out", dictionary, "mmap")
        return [[dictionary[token] for token in line[:-1]] for line in read]


def settings_of(folder: Path) -> Any:
    """Return the task's settings for a training on a data folder."""
    register()
    words = [str(folder), "--user-dir", str(PLUGIN), "--task", "sb_translation"]
    words += ["--arch", "sb_transformer_tiny"]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    return convert_namespace_to_omegaconf(args).task


@dataclass(frozen=True)
class Reader:
    """A kind of file.

    Attributes:
        name: in tables.
        file: its path below the campaign's folder.
        content: of a whole one.
        read: reads it as the step does that needs it.
        exact: whether what is changed is never read as something else.
    """

    name: str
    file: str
    content: bytes
    read: Callable[[Path], Any]
    exact: bool = False


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def as_lines(values: list[Any]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def checkpoint() -> bytes:
    """Make a small checkpoint."""
    weights = {f"layer.{i}": torch.randn(3, 4) for i in range(3)}
    settings = {"model": {"sb_direction": "both", "encoder_layers": 1}}
    file = io.BytesIO()
    torch.save({"model": weights, "cfg": settings, "args": None}, file)
    return file.getvalue()


def readers(folder: Path, data: DataFolder) -> list[Reader]:
    """Return all kinds of files."""
    recipe = folder / "recipe"
    recipe.mkdir(exist_ok=True)
    (recipe / "recipe.yaml").write_bytes(as_json(RECIPE))
    settings = load_recipe(recipe, False)
    source = [f"w{i} w{i + 1}" for i in range(6)]
    half = {"text": "W1 W2", "score": -1.5, "tokens": 2}
    records = [
        {"id": i, "source": line, "winner": "l2r", "l2r": half, "r2l": half}
        for i, line in enumerate(source)
    ]
    shard = [
        {"id": 0, "score": -1.0, "text": "W1"},
        {"id": 1, "skipped": "9 tokens, at most 5 are allowed"},
    ]
    job = jobs.describe_job(source, ["--beam", "2"])
    options_ = {"--lr": 0.1, "--arch": "transformer", "--cpu": None}
    facts = dict.fromkeys(("commit", "date", "machine", "versions", "spec"), "x")
    head = {"command": "c", **facts, "models": {}}
    step = {"step": 1, "l2r": [], "r2l": []}
    trace = {
        **{"id": 0, "source": "w1", "beam": 2, "pairing": "rank"},
        **{"steps": [step], "pool": [{"text": "W1", "score": -1.0}]},
    }
    runs = [{"system": "SB-NMT", "beam": 4, "BLEU": 20.0, "signature": "nrefs:1"}]
    log = costs.launch_line("fairseq-train x") + (
        "2026-11-21 10:00:00 | INFO | train | epoch 001 | loss 3 | wpb 9 | "
        "num_updates 5\n"
    )
    log += costs.at_line() + costs.end_line(0.5)
    target = folder / "target"
    write_lines(target, ["a b c"] * 3)
    generated = "S-0\tw1\nH-0\t-0.5\tW1 W2\nH-1\t-0.5\tW3\n"
    return [
        Reader(
            *("checkpoint", "model.pt", checkpoint()),
            lambda p: repr(read_checkpoint(str(p))),
            exact=True,
        ),
        Reader(
            *("recipe.yaml", "recipe/recipe.yaml", as_json(RECIPE)),
            lambda p: load_recipe(p.parent, False),
        ),
        Reader(
            *("recipe.json", "work/recipe.json", as_json(settings)),
            lambda p: check_recipe(p.parent, settings),
        ),
        Reader(
            *("options.json", "work/options.json", as_json(options_)),
            lambda p: ModelRecord(p.parent, options_).check(),
        ),
        Reader(
            *("shard", "00000.jsonl", as_lines(shard)),
            lambda p: jobs.merge([p], 2, p.with_suffix(".tsv")),
        ),
        Reader(
            *("job.json", "o.shards/job.json", as_json(job)),
            lambda p: jobs.check_same_job(p.parent.with_suffix(""), p.parent, job),
        ),
        Reader(
            *("pseudo targets", "l2r.tsv", b"0\t-0.5\tW1\n2\t-0.25\tW2 W3\n"),
            lambda p: dict(translations.each_translation(p, 4)),
        ),
        Reader(
            *("output of fairseq-generate", "generate-x.txt", generated.encode()),
            translations.read_generated,
        ),
        Reader(
            *("records", "records.jsonl", as_lines(records)),
            lambda p: read_winners("--records", p, source, ["W1 W2"] * 6),
        ),
        Reader(
            *("trace", "trace.jsonl", as_lines([trace])),
            lambda p: traces.section(traces.read_traces(p)),
        ),
        Reader(
            *("beam sweep", "sweep.json", as_json({"runs": runs})),
            lambda p: Sweep.of_file(p).all,
        ),
        Reader(
            *("benchmark.json", "b/benchmark.json", as_json({**head, "decoding": []})),
            lambda p: begun(p, head),
        ),
        Reader("log", "train.log", log.encode(), costs.step_cost),
        Reader("codes", "codes", CODES, lambda p: read_codes(str(p))),
        Reader(
            *("dictionary", "dict.en.txt", "ab@@ 12\nc 3\né 1\n".encode()),
            lambda p: SBTranslationTask.load_dictionary(str(p)).symbols,
        ),
        Reader(
            *("phrase table", "phrases", "a b ||| A é ||| 0.5 3\n".encode()),
            lambda p: PhraseTable.load(p).entries,
        ),
        Reader(
            *("links", "links", b"0-0 1-2\n\n2-1\n"),
            lambda p: [*linked_sentences(str(target), str(target), str(p))],
        ),
        Reader(
            *("known links", "gold", b"0-0 1?2\n\n2-1\n"),
            lambda p: read_gold(str(p), read_lines(p), *2 * [[[0, 1, 2]] * 3]),
        ),
        Reader(
            *("lengths of sets", "sets/test.sets", b"one\t1\ntwo\t2\n"),
            lambda p: References(p.parent, "de").sets(3),
        ),
    ]
