"""Made the checkpoints and expected.json here, at commit 180b74d (0.2.0).

    git checkout 180b74d && python make.py FOLDER     (in an environment of that commit)

Writes data/ (triples with a joined dictionary), table (phrase table), input.en, a
checkpoint for every family and for every option that later versions may do without
(with its optimiser where a test goes on from it), and expected.json: how each was
trained, how it decodes, and the weights' norms where a training has gone on.  Tests
make none of it anew, but take from here how a command is given.
"""

import json
import shutil
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import train as fairseq_train

if __name__ == "__main__":
    sys.path[:0] = ["tests", "."]
import commands

LINES = ["w1 w2 w3", "w4", "w5 w5 w6 w7 w8", "", "w9 w10 w11 w0 w2 w1"]
TABLE = [(word, word.upper()) for word in sorted(commands.WORDS)[::2]]
COMMON = [
    *["--criterion", "sb_label_smoothed_cross_entropy", "--cpu", "--num-workers", "0"],
    *["--optimizer", "adam", "--lr", "0.01", "--max-tokens", "400", "--dropout", "0"],
    *["--seed", "1", "--log-format", "simple", "--no-epoch-checkpoints"],
    *["--max-epoch", "60"],
]
CHANNELS = ["--encoder-embed-dim", "16", "--decoder-embed-dim", "16"]
TRANSFORMER = [
    *CHANNELS,
    *["--encoder-ffn-embed-dim", "16", "--decoder-ffn-embed-dim", "16"],
    *["--encoder-attention-heads", "2", "--decoder-attention-heads", "2"],
    *["--encoder-layers", "1", "--decoder-layers", "1"],
]
LONGER = ["--lr", "0.02", "--max-epoch", "300"]
RNN = [*LONGER, *CHANNELS, "--encoder-hidden-size", "8", "--decoder-hidden-size", "16"]
SB = ["--arch", "sb_transformer_tiny", *TRANSFORMER]
READS = ["--sb-lambda", "1", "--sb-future-dropout", "0", "--sb-future-shift"]
READER = [*READS, "--sb-reader", "--finetune-from-model", "@sb-writer.pt"]
L2R = ["--sb-direction", "l2r"]
ENAT = [
    *["--arch", "enat_transformer_tiny", *TRANSFORMER, *L2R],
    *["--criterion", "enat_cross_entropy", "--share-all-embeddings"],
]
TWO_WAY = [
    *LONGER,
    *["--arch", "two_way_tiny", *L2R, "--criterion", "two_way_cross_entropy"],
    *["--decoder-layers", "1", "--decoder-embed-dim", "16", "--two-way-units", "12"],
    *["--decoder-ffn-embed-dim", "16", "--decoder-attention-heads", "2"],
]
LOOKED_UP = ["--enat-table", "@table"]

# name -> words of its training; @NAME is a file of this folder
CHECKPOINTS: dict[str, list[str]] = {
    "sb": [*SB, "--decoder-layers", "2"],
    "sb-writer": [*SB, "--sb-lambda", "0"],
    "sb-reader": [*SB, *READER, "--sb-freeze-writer"],
    "sb-reader-free": [*SB, *READER],
    "sb-gate": [*SB, "--sb-fusion", "gate"],
    "sb-learned": [*SB, "--sb-learn-lambda"],
    "sb-shift": [*SB, *READS],
    "sb-same": [*SB, *READS, "--sb-same-text", "0.5"],
    "sb-own": [*SB, *READS, "--sb-partner", "own", "--sb-partner-noise", "0.5"],
    "sb-dropped": [*SB, *READS, "--sb-partner-dropout", "0.5"],
    "abd": ["--arch", "abd_transformer_tiny", *TRANSFORMER],
    "rnnsearch": ["--arch", "rnnsearch", *RNN, *L2R],
    "ba": ["--arch", "ba_nmt", *RNN, *L2R],
    "two-way": TWO_WAY,
    "enat-phrase": [*ENAT, "--enat-input", "phrase", *LOOKED_UP],
    "enat-map": [*ENAT, "--enat-input", "map"],
    "teacher-l2r": ["--arch", "transformer_tiny", *TRANSFORMER, *L2R],
    "teacher-r2l": [
        "--arch",
        "transformer_tiny",
        *TRANSFORMER,
        "--sb-direction",
        "r2l",
    ],
}
RESUMED = "sb", "sb-reader", "sb-same"  # those that go on, with an optimiser
BOTH = ["--beam", "4", "--nbest", "2", "--lenpen", "0.6"]
ONE = [*BOTH, *L2R]
FORTH = ["--source-lang", "en", "--target-lang", "de"]
BACK = ["--source-lang", "de", "--target-lang", "en"]
# beside one decoding of every checkpoint: name -> checkpoint and options
MORE: dict[str, tuple[str, list[str]]] = {
    "sb, rescored": ("sb", [*BOTH, "--sb-rescore", "1"]),
    "sb, l2r answers": ("sb", [*BOTH, "--sb-answer", "l2r"]),
    "sb, best pairs": ("sb", [*BOTH, "--sb-pairing", "best"]),
    "two-way, back": ("two-way", [*ONE, *BACK]),
    "enat-phrase, a teacher": (
        "enat-phrase",
        [*ONE, *LOOKED_UP, "--nat-teacher", "@teacher-l2r.pt"],
    ),
    "enat-map, a teacher": ("enat-map", [*ONE, "--nat-teacher", "@teacher-l2r.pt"]),
}


def found(words: list[str], folder: Path) -> list[str]:
    """The words of a command, @NAME as a file's path."""
    return [str(folder / x[1:]) if x.startswith("@") else x for x in words]


def train(data: Path, save: Path, words: list[str]) -> Path:
    """fairseq-train, which a folder's checkpoint_last.pt lets go on."""
    command = [str(data), "--save-dir", str(save), *commands.PLUGIN, *words]
    args = options.parse_args_and_arch(options.get_training_parser(), command)
    fairseq_train.main(convert_namespace_to_omegaconf(args))
    return save / "checkpoint_last.pt"


def go_on(words: list[str], updates: int) -> list[str]:
    """The words of a training that goes on for one more update."""
    return [*words, "--max-epoch", "0", "--max-update", str(updates + 1)]


def decode(data: Path, path: Path, text: str, words: list[str]) -> dict[str, Any]:
    """fairseq-interactive's hypotheses, a list of [score, text] for each sentence."""
    output = commands.run_interactive(data, path, text, *FORTH, *words)
    hypotheses = commands.lines(output, "H")
    return {
        str(i): [[f"{float(score):.4f}", answer] for score, answer in rows]
        for i, rows in sorted(hypotheses.items())
    }


def norms(path: Path) -> dict[str, float]:
    """The L2 norm of every weight."""
    weights = torch.load(path, map_location="cpu", weights_only=False)["model"]
    return {
        name: round(float(value.double().norm()), 6) for name, value in weights.items()
    }


def neutral(value: Any, roots: list[str]) -> Any:
    """The same without the paths of whoever runs this."""
    if isinstance(value, Namespace):
        return Namespace(**neutral(vars(value), roots))
    if isinstance(value, dict):
        return {key: neutral(item, roots) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(neutral(item, roots) for item in value)
    if isinstance(value, str):
        for root in roots:
            value = value.replace(root, ".")
    return value


def write(path: Path, made: Path, folder: Path, optimiser: bool) -> None:
    """Write a checkpoint as a witness."""
    state = torch.load(made, map_location="cpu", weights_only=False)
    state["extra_state"].pop("metrics")
    if not optimiser:
        state["last_optimizer_state"] = None
    state["cfg"] = neutral(state["cfg"], [str(folder), str(commands.ROOT)])
    torch.save(state, path)


def prepare(folder: Path) -> Path:
    """Texts, their data folder, and a phrase table."""
    texts = folder / "texts"
    commands.write_texts(texts, {"train": 120, "valid": 6, "test": 6})
    data = commands.binarise(texts, folder / "data", "--joined-dictionary")
    for log in data.glob("*.log"):
        log.unlink()
    shutil.rmtree(texts)
    rows = [f"{word} ||| {target} ||| 1.000000 9\n" for word, target in TABLE]
    (folder / "table").write_text("".join(rows))
    (folder / "input.en").write_text("".join(line + "\n" for line in LINES))
    return data


def decodings() -> dict[str, tuple[str, list[str]]]:
    """Name -> checkpoint and options."""
    made = {}
    for name, words in CHECKPOINTS.items():
        own = []
        for flag in "--sb-direction", "--enat-table":
            if flag in words:
                own += [flag, words[words.index(flag) + 1]]
        made[name] = (name, [*BOTH, *own])
    return made | MORE


def main(folder: Path) -> None:
    """Make all."""
    folder = folder.resolve()
    data = prepare(folder)
    text = (folder / "input.en").read_text()
    expected: dict[str, Any] = {"trained": {}, "decoded": {}, "resumed": {}}
    for name, own in CHECKPOINTS.items():
        words = [*COMMON, *own]
        expected["trained"][name] = words
        save = folder / "save" / name
        last = train(data, save, found(words, folder))
        write(folder / f"{name}.pt", last, folder, optimiser=name in RESUMED)
        if name in RESUMED:
            state = torch.load(last, weights_only=False)
            updates = state["optimizer_history"][-1]["num_updates"]
            last = train(data, save, go_on(found(words, folder), updates))
            expected["resumed"][name] = {"updates": updates, "norms": norms(last)}
    for name, (checkpoint, words) in decodings().items():
        path = folder / f"{checkpoint}.pt"
        expected["decoded"][name] = {
            "checkpoint": checkpoint,
            "options": words,
            "hypotheses": decode(data, path, text, found(words, folder)),
        }
    shutil.rmtree(folder / "save")
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
