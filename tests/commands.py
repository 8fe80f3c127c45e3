"""fairseq's commands in this process, on a few sentences, and what they print."""

from __future__ import annotations

import contextlib
import io
import random
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate, interactive, train

from sbnmt_plugin.symbols import RESERVED

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ["--user-dir", str(ROOT / "sbnmt_plugin"), "--task", "sb_translation"]
# in this process, a loader's worker takes seconds to be waited for
NO_WORKERS = ["--num-workers", "0"]
ALL = [*NO_WORKERS, "--criterion", "sb_label_smoothed_cross_entropy", "--cpu"]
UPDATES = [
    *["--optimizer", "adam", "--lr", "0.01", "--max-tokens", "500", "--dropout", "0"],
    *["--seed", "1", "--log-format", "simple"],
]
TINY = [
    *ALL,
    *UPDATES,
    *["--encoder-layers", "1", "--decoder-layers", "2", "--encoder-embed-dim", "32"],
    *["--encoder-ffn-embed-dim", "24"],
]
TINY_RNN = [
    *ALL,
    *UPDATES,
    *["--encoder-embed-dim", "16", "--encoder-hidden-size", "12"],
    *["--decoder-embed-dim", "16", "--decoder-hidden-size", "16"],
]
TINY_TWO_WAY = [
    *ALL,
    *UPDATES,
    *["--decoder-layers", "1", "--decoder-embed-dim", "16", "--two-way-units", "24"],
    *["--decoder-ffn-embed-dim", "16"],
]
SB = ["--arch", "sb_transformer_tiny"]
# flags of 0.2.0
RETIRED = ["--sb-same-text", "--sb-partner", "--sb-partner-dropout"]
RETIRED += ["--sb-freeze-writer"]
ABD = ["--arch", "abd_transformer_tiny"]
BA = ["--arch", "ba_nmt", "--sb-direction", "l2r"]
TWO_WAY = [
    *["--arch", "two_way_tiny", "--sb-direction", "l2r"],
    *["--criterion", "two_way_cross_entropy"],
]
L2R = ["--sb-direction", "l2r", "--max-len-a", 1, "--max-len-b", 3]
OWN_SIZES = {"ba_nmt": TINY_RNN, "two_way_tiny": TINY_TWO_WAY}
WORDS = [f"w{i}" for i in range(12)]
SIZES = {"train": 300, "valid": 13, "test": 21}  # sentences of the data folders


def write_texts(folder: Path, sizes: dict[str, int], opposite: bool = True) -> Path:
    """Bitext that a few epochs learn: words in upper case; other R2L texts."""
    generator = random.Random(3)
    folder.mkdir(parents=True, exist_ok=True)
    for split, size in sizes.items():
        rows = [
            [generator.choice(WORDS) for _ in range(generator.randint(2, 6))]
            for _ in range(size)
        ]
        lines = {"en": rows, "de": [[w.upper() for w in row] for row in rows]}
        if opposite and split == "train":
            lines["r2l"] = [  # a teacher that misses the last word of every third
                [*row[:-1], "W0"] if i % 3 == 0 else row
                for i, row in enumerate(lines["de"])
            ]
        for suffix, texts in lines.items():
            text = "".join(" ".join(row) + "\n" for row in texts)
            (folder / f"{split}.{suffix}").write_text(text)
    return folder


def binarise(texts: Path, data: Path, *words: str) -> Path:
    """scripts/binarise.py."""
    from sbnmt_plugin.tools.commands import binarise as script

    command = ["binarise.py", "-s", "en", "-t", "de", "--destdir", str(data)]
    for split in ("train", "valid", "test"):
        if (texts / f"{split}.en").exists():
            command += [f"--{split}pref", str(texts / split)]
    with mock.patch.object(sys, "argv", [*command, *words]):
        script.main()
    return data


def changeable(data: Path, folder: Path) -> Path:
    """A copy of a data folder that a test may change: it has no checksums."""
    shutil.copytree(data, folder, ignore=shutil.ignore_patterns("SHA256SUMS"))
    return folder


@contextlib.contextmanager
def captured():
    """Standard output, as text afterwards."""
    result = SimpleNamespace(text="")
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        yield result
    result.text = stream.getvalue()


def run_train(data: Path, save: Path, *words: object, cpu: bool = True) -> Path:
    """fairseq-train."""
    parser = options.get_training_parser()
    sizes = next((own for arch, own in OWN_SIZES.items() if arch in words), TINY)
    command = [str(data), "--save-dir", str(save), *PLUGIN, *sizes, *map(str, words)]
    if not cpu:
        command.remove("--cpu")
    args = options.parse_args_and_arch(parser, command)
    train.main(convert_namespace_to_omegaconf(args))
    return save / "checkpoint_last.pt"


def hydra_words(data: Path, folder: Path, *words: object) -> list[str]:
    """Words of fairseq-hydra-train by the toy's settings, for one update, to python."""
    settings = {
        "common.user_dir": ROOT / "sbnmt_plugin",
        "task.data": data,
        "checkpoint.save_dir": folder / "hydra",
        "hydra.run.dir": folder / "run",
        "optimization.max_update": 1,
    }
    place = ["--config-dir", ROOT / "examples" / "toy", "--config-name"]
    own = [f"{name}={value}" for name, value in settings.items()]
    command = ["-m", "fairseq_cli.hydra_train", *place, "sb_transformer", *own, *words]
    return list(map(str, command))


def run_generate(
    data: Path, path: object, *words: object, task: bool = True, cpu: bool = True
) -> str:
    """fairseq-generate's standard output."""
    parser = options.get_generation_parser()
    command = [str(data), "--path", str(path), *(PLUGIN if task else [])]
    command += ["--cpu"] if cpu else []
    command += map(str, words)
    if "--beam" not in command:
        command += ["--beam", "4"]
    args = options.parse_args_and_arch(parser, command)
    with captured() as out:
        generate.main(convert_namespace_to_omegaconf(args))
    return out.text


def run_interactive(
    data: Path, path: object, text: str, *words: object, cpu: bool = True
) -> str:
    """fairseq-interactive's standard output for lines typed in."""
    parser = options.get_interactive_generation_parser()
    command = [str(data), "--path", str(path), *PLUGIN, "--beam", "4"]
    command += ["--cpu"] if cpu else []
    args = options.parse_args_and_arch(parser, [*command, *map(str, words)])
    # fairseq reads through fileinput, which caches the real standard input
    with captured() as out, mock.patch("fileinput.input") as reading:
        reading.return_value.__enter__.return_value = io.StringIO(text)
        interactive.main(convert_namespace_to_omegaconf(args))
    return out.text


def load_hub(kind: Any, path: Path, data: Path, **options: object) -> Any:
    """Load a checkpoint as Python's interface of a kind of models."""
    names = str(path.parent), path.name, str(data)
    return kind.from_pretrained(*names, **options)


def lines(output: str, kind: str) -> dict[int, list[list[str]]]:
    """H-, D-, P-, A-, S- or T- lines by id."""
    found: dict[int, list[list[str]]] = {}
    for line in output.splitlines():
        if line.startswith(f"{kind}-"):
            name, *rest = line.split("\t")
            found.setdefault(int(name[2:]), []).append(rest)
    return found


def load(path: Path) -> dict:
    return torch.load(path, map_location="cpu", weights_only=True)


def best(output: str) -> dict[int, list[str]]:
    """Return score and text of every sentence's best hypothesis."""
    return {i: rows[0] for i, rows in lines(output, "H").items()}


def assert_prints_three_hypotheses(output: str) -> None:
    """Check that all lines that fairseq writes are there, best hypotheses first."""
    count = SIZES["test"]  # 21 is no multiple of 8: the last batch is there too
    for kind in "STHDP":
        assert sorted(lines(output, kind)) == list(range(count))
    for i, rows in lines(output, "H").items():
        assert len(rows) == 3
        values = [float(row[0]) for row in rows]
        assert values == sorted(values, reverse=True)
        for (_, text), (scores,) in zip(rows, lines(output, "P")[i]):
            assert len(scores.split()) == len(text.split()) + 1
            assert not {*RESERVED} & set(text.split())  # a bad model may write <unk>
    assert f"Translated {count} sentences" not in output  # that is logged, not printed
    assert "Generate test with beam=4: BLEU4 = " in output


def assert_batch_size_does_not_matter(data: Path, path: Path, *words: object) -> None:
    """Check that a sentence has the same text and score alone and in company."""
    one, many = (
        best(run_generate(data, path, *words, "--batch-size", size)) for size in (1, 32)
    )
    for i, (score, text) in one.items():
        assert text == many[i][1]
        assert float(score) == pytest.approx(float(many[i][0]), abs=1e-4)


def assert_all_translate_alike(
    data: Path, path: Path, hub: Any, words: list, **options: object
) -> None:
    """Check that generate, interactive and Python translate the test set alike.

    Args:
        words: options of fairseq's commands; the rest are the same ones of Python.
    """
    output = run_generate(data, path, *words)
    texts = [text for _, (_, text) in sorted(best(output).items())]
    sources = [rows[0][0] for _, rows in sorted(lines(output, "S").items())]
    assert hub.translate(sources, **options) == texts
    typed = best(run_interactive(data, path, "\n".join([*sources, ""]), *words))
    assert [typed[i][1] for i in range(len(texts))] == texts


def assert_two_halves_are_the_whole(
    data: Path, folder: Path, *words: object, half: int = 1
) -> None:
    """Check that a training that stops after some epochs and goes on is the same."""
    words = (*words, "--dropout", 0.2, "--update-freq", 2)
    whole = run_train(data, folder / "whole", *words, "--max-epoch", 2 * half)
    run_train(data, folder / "half", *words, "--max-epoch", half)
    resumed = run_train(data, folder / "half", *words, "--max-epoch", 2 * half)
    assert_equal_models(load(whole)["model"], load(resumed)["model"])


def noisy_epochs(data: Path, save: Path, *words: object) -> dict:
    """Train SB-NMT with these options; return the parameters."""
    run_train(data, save, *SB, "--no-epoch-checkpoints", *words)
    return load(save / "checkpoint_last.pt")["model"]


def assert_equal_models(one: dict, other: dict) -> None:
    """Check that two models' parameters are equal to the bit."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert value.equal(other[name]), name
