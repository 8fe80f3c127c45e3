"""The two generated tables of README.md, from the committed results.

python tests/readme_tables.py        writes them anew

A table stands between ``<!-- results -->`` and ``<!-- end results -->``, the other one
between the same with ``speed``.
"""

import functools
import json
import re
from pathlib import Path
from statistics import mean, stdev

from sbnmt_plugin.tools.results.sweep import system_and_seed
from sbnmt_plugin.tools.results.table import aligned

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BASELINE = "teacher-l2r"
SYSTEMS = {
    BASELINE: "Transformer, L2R",
    "transformer-pl": "Transformer with pseudo targets",
    "rerank": "Rerank-NMT: two Transformers",
    "sb": "SB-NMT as in the paper",
    "sb+rescored": "SB-NMT as in the paper, rescored",
    "sb-lambda0+rescored": "SB-NMT without interaction, rescored",
    "sb-reader-two+rescored": "SB-NMT with a reader, rescored",
}
FIRST = "test2016"
SCORE = "tokenised BLEU"
# heading -> file of scores, its sets (None: the whole score), text of comparisons
COLUMNS = {
    "2+2 layers, test2016, seed 1 (±: 1–3)": ("multi30k/converged-small", None, FIRST),
    "2+2 layers, three other sets, seed 1": (
        *("multi30k/sets-small", ("test2017", "coco2017", "test2018")),
        "three more sets",
    ),
    "4+4 layers, four sets, seed 1": ("multi30k/full", None, "all four sets"),
    "4+4 layers, `bitext`, test2016, seed 1": ("bitext/multi30k-small", None, FIRST),
}
NOT_RUN = "not run"
COMPARED = {  # all others are in multi30k/compared-small
    "multi30k/full": "multi30k/compared-full",
    "bitext/multi30k-small": "bitext/compared-small",
}
OTHER_NAMES = {"sb-paper": "sb"}  # of the recipe bitext
# heading -> file of speeds, sentences of a batch, kind of length
SPEEDS = {
    "base, batch 50": ("cpu-amd", 50, 25),
    "base, one sentence": ("cpu-amd", 1, 25),
    "small, trained, batch 50": ("cpu-multi30k-small", 50, "test set, no options"),
}
RUNS = {
    ("fairseq", "bfloat16"): "fairseq in bfloat16",
    ("SB-NMT", "float32"): "SB-NMT",
    ("SB-NMT", "bfloat16"): "SB-NMT, `--sb-bf16`",
    ("SB-NMT rescored", "float32"): "SB-NMT, rescored",
    ("SB-NMT λ=0 rescored", "float32"): "SB-NMT without interaction, rescored",
}


@functools.cache
def read(name):
    return json.loads((ROOT / "examples" / name).read_text(encoding="utf-8"))


def rows_of_system(stem, name):
    rows = read(f"{stem}.json")["rows"]
    return [row for row in rows if known(system_and_seed(row["name"])[0]) == name]


def known(name):
    """A row's name in the recipe multi30k."""
    base, plus, rest = name.partition("+")
    return OTHER_NAMES.get(base, base) + plus + rest


def score(stem, name, sets):
    """What a system scores in a file: a score, or mean ± deviation."""
    scores = [
        mean(row["sets"][each] for each in sets) if sets else row[SCORE]
        for row in rows_of_system(stem, name)
    ]
    if len(scores) > 1:
        return f"{mean(scores):.2f} ± {stdev(scores):.2f}"
    return f"{scores[0]:.2f}" if scores else NOT_RUN


def p(stem, name, text):
    """p of a system against the Transformer, of the seed that both have."""
    compared = read(f"{COMPARED.get(stem, 'multi30k/compared-small')}.json")["rows"]
    asked = {"row": name, "against": BASELINE, "text": text, "seeds": "1"}
    run = stem.rpartition("/")[2]
    runs = {run, "sets-small"} if run == "converged-small" else {run}
    found = [
        row["p"]
        for row in ({**row, "row": known(row["row"])} for row in compared)
        if row["run"] in runs and asked == {key: row[key] for key in asked}
    ]
    return f", p {found[0]:.3f}" if found else ""


def results():
    """The lines of the table of results."""
    cells = [
        [
            title,
            *(
                score(stem, name, sets) + p(stem, name, text)
                for stem, sets, text in COLUMNS.values()
            ),
        ]
        for name, title in SYSTEMS.items()
    ]
    signatures = {
        read(f"{stem}.json")["signatures"][SCORE].partition(",")[0]
        for stem, _, _ in COLUMNS.values()
    }
    (signature,) = signatures
    return [
        *aligned(["Multi30k, tokenised BLEU", *COLUMNS], cells),
        "",
        "p: one-sided bootstrap of seed 1 against the first row, over all sentences "
        "of a column. No p: not tested.",
        f"`{signature}`",
    ]


def ratio(name, batch, length, system, dtype):
    """How many times as fast as fairseq a system is."""
    wanted = system, dtype, batch, length
    (row,) = [
        row
        for row in read(f"benchmark/{name}.json")["decoding"]
        if (row["system"], row["dtype"], row["batch"], row["length"]) == wanted
    ]
    return f"{row['ratio']:.2f}"


def speed():
    """The lines of the table of speeds."""
    cells = [
        [title, *(ratio(*column, *run) for column in SPEEDS.values())]
        for run, title in RUNS.items()
    ]
    (machine,) = {
        read(f"benchmark/{name}.json")["machine"] for name, *_ in SPEEDS.values()
    }
    return [
        *aligned(["speed, × fairseq's Transformer", *SPEEDS], cells),
        "",
        f"{machine}, beam 4, beside fairseq in float32. Base models have random "
        "weights and",
        "write 25 tokens, small ones translate Multi30k with default options.",
    ]


TABLES = {"results": results, "speed": speed}


def marked(name):
    """Pattern of what stands between a table's marks, the empty lines around too."""
    return re.compile(f"(?<=<!-- {name} -->\n)(.*?)(?=<!-- end {name} -->)", re.S)


def block(name):
    """What must stand between a table's marks."""
    return "\n".join(["", *TABLES[name](), "", ""])


def renewed(text):
    """The README's text with both tables anew."""
    for name in TABLES:
        text = marked(name).sub(lambda _, name=name: block(name), text)
    return text


if __name__ == "__main__":
    README.write_text(renewed(README.read_text(encoding="utf-8")), encoding="utf-8")
