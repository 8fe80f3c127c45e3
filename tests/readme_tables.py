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
    "2+2 layers, test2016, seed 1 (±: 1–3)": ("converged-small", None, FIRST),
    "2+2 layers, three other sets, seed 1": (
        *("sets-small", ("test2017", "coco2017", "test2018")),
        "three more sets",
    ),
    "4+4 layers, four sets, seed 1": ("full", None, "all four sets"),
}
NOT_RUN = "not run"
COMPARED = {"full": "compared-full"}  # all others are in compared-small
SPEED = "benchmark/cpu-base.json"
EARLIER = "benchmark/cpu-headline.json"  # of the same machine, with more systems
RUNS = {
    ("fairseq", "float32"): "fairseq, float32",
    ("SB-NMT", "float32"): "SB-NMT, float32",
    ("SB-NMT", "bfloat16"): "SB-NMT, `--sb-bf16`",
}


@functools.cache
def read(name):
    return json.loads((ROOT / "examples" / name).read_text(encoding="utf-8"))


def rows_of_system(stem, name):
    rows = read(f"multi30k/{stem}.json")["rows"]
    return [row for row in rows if system_and_seed(row["name"])[0] == name]


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
    compared = read(f"multi30k/{COMPARED.get(stem, 'compared-small')}.json")["rows"]
    asked = {"row": name, "against": BASELINE, "text": text, "seeds": "1"}
    runs = {stem, "sets-small"} if stem == "converged-small" else {stem}
    found = [
        row["p"]
        for row in compared
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
        read(f"multi30k/{stem}.json")["signatures"][SCORE].partition(",")[0]
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


def decoding(held, system, dtype):
    """The measurement of a system with batches of 50 sentences."""
    wanted = system, dtype, 50
    (row,) = [
        row
        for row in held["decoding"]
        if (row["system"], row["dtype"], row["batch"]) == wanted
    ]
    return row


def speed():
    """The lines of the table of speeds."""
    held = read(SPEED)
    cells = []
    for (system, dtype), title in RUNS.items():
        row = decoding(held, system, dtype)
        ratio, least, most = (row[f"ratio{end}"] for end in ("", ", least", ", most"))
        cells.append(
            [
                title,
                f"{row['sentences/s']:.1f}",
                f"{ratio:.2f} ({least:.2f}–{most:.2f})",
                f"{row['memory ratio']:.2f}",
            ]
        )
    header = ["decoding", "sentences/s", "speed, × fairseq", "memory, × fairseq"]
    rescored, plain = (
        decoding(read(EARLIER), system, "float32")["ratio"]
        for system in ("SB-NMT rescored", "Transformer in our search")
    )
    return [
        *aligned(header, cells),
        "",
        f"{held['machine']}: {row['length']} tokens, batch {row['batch']}, "
        f"beam {row['beam']}, base size.",
        "Speed is the median of the rounds' ratios. In an earlier version it was "
        f"{rescored:.1f} with rescoring,",
        f"and {plain:.1f} for a plain Transformer in our search.",
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
