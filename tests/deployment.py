"""Times a model folder, its exports and fairseq-interactive on raw text.

    python tests/deployment.py deployment.json work/multi30k-small RAW

WORK is a finished folder of sbnmt recipe bitext, whose WORK/model has no interaction,
and RAW has its test.SOURCE and test.TARGET.  Every way to translate is a command: the
time of its first line is that of a text of one line, from its start, the median of
three.  Pseudo targets are the R2L teacher's, of all of the training text.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import yaml

from sbnmt_plugin.tools.machine import commit, machine, versions
from sbnmt_plugin.tools.scoring import scores
from sbnmt_plugin.tools.text import read_lines
from sbnmt_plugin.tools.unfinished import write_json

ROUNDS = 3
PLUGIN = Path(__file__).parents[1] / "sbnmt_plugin"
SBNMT = [sys.executable, "-m", "sbnmt_plugin"]
DTYPES = "float32", "int8"


def run(words, lines=None):
    """Seconds, seconds of all processors, and lines of a command's output."""
    given = None if lines is None else "".join(f"{line}\n" for line in lines)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    made = subprocess.run(
        [str(word) for word in words],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - start
    if made.returncode:
        raise RuntimeError(f"{words}: {made.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, made.stdout.splitlines()


def first_line(words, line, mark):
    """Seconds until a command tells the translation of a text of one line.

    Args:
        mark: how the line begins in which its translation stands.
    """
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        with subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            process.stdin.write(f"{line}\n")
            process.stdin.close()
            if not any(line.startswith(mark) for line in process.stdout):
                raise RuntimeError(f"{words} has no translation")
            found.append(time.perf_counter() - start)
    return median(found)


def interactive(model, search, source, target):
    """The command of fairseq-interactive that translates as a model folder does."""
    options = {
        "--path": model / "model.pt",
        "--user-dir": PLUGIN,
        "--task": "sb_translation",
        "-s": source,
        "-t": target,
        "--tokenizer": "moses",
        "--bpe": "subword_nmt",
        "--bpe-codes": model / "codes",
        "--beam": search["beam"],
        "--lenpen": search["lenpen"],
        "--max-len-a": search["max_len_a"],
        "--max-len-b": search["max_len_b"],
        "--sb-rescore": search["rescore"],
    }
    words = [word for option in options.items() for word in option]
    return ["fairseq-interactive", model, "--cpu", *words]


def pseudo_targets(work, source, folder):
    """Rows of the teacher's translations of the training text, by either engine."""
    text = work / "bpe" / f"train.{source}"
    search = ["--beam", 4, "--lenpen", 0.6, "--max-len-a", 1.2, "--max-len-b", 10]
    model = work / "teacher-r2l" / "model.pt"
    texts = []
    for engine in "fairseq", "ctranslate2":
        output = folder / f"{engine}.tsv"
        words = [*SBNMT, "pseudo", work / "data", "--path", model, "--cpu"]
        words += ["--sb-direction", "r2l", "--engine", engine, "--input", text]
        wall, cpu, _ = run([*words, "--output", output, *search])
        lines = [line.split("\t") for line in read_lines(output)]
        texts.append({line[0]: line[2] for line in lines})
        same = sum(texts[0].get(x) == words for x, words in texts[-1].items())
        yield {
            "command": f"pseudo --engine {engine}",
            "lines": len(lines),
            **{"all lines, s": round(wall, 1), "processors, s": round(cpu, 1)},
            "same texts": f"{same / len(lines):.1%}",
        }


def main():
    output, work, raw = sys.argv[1], *map(Path, sys.argv[2:])
    folder = Path(output).resolve().parent
    model = work / "model"
    said = yaml.safe_load((model / "model.yaml").read_text(encoding="utf-8"))
    source, target = (said[side]["language"] for side in ("source", "target"))
    lines, gold = (read_lines(raw / f"test.{x}") for x in (source, target))
    ways = {"translate MODEL": [*SBNMT, "translate", model]}
    for dtype in DTYPES:
        made = folder / f"exported-{dtype}"
        run([*SBNMT, "export", model, "--output", made, "--quantization", dtype])
        ways[f"translate EXPORTED, {dtype}"] = [*SBNMT, "translate", made]
    ways["fairseq-interactive"] = interactive(model, said["search"], source, target)
    rows, known = [], {}
    for rescored in "yes", "no":
        for name, words in ways.items():
            ours = words[:4] == [*SBNMT, "translate"]
            if rescored == "no" and not ours:
                continue
            words = [*words, "--rescore", 0] if rescored == "no" else words
            wall, cpu, found = run(words, lines)
            if not ours:
                found = [x.split("\t", 2)[2] for x in found if x.startswith("D-")]
            first = known.setdefault(rescored, found)
            same = sum(a == b for a, b in zip(first, found, strict=True))
            rows.append(
                {
                    **{"command": name, "rescored": rescored, "lines": len(lines)},
                    "first line, s": round(
                        first_line(words, lines[0], "" if ours else "D-"), 2
                    ),
                    **{"all lines, s": round(wall, 1), "processors, s": round(cpu, 1)},
                    "BLEU": scores(found, [gold])["BLEU"]["score"],
                    "same texts": f"{same / len(lines):.1%}",
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    rows += pseudo_targets(work, source, folder)
    head = {"title": "Raw text by a model folder, its exports and fairseq-interactive"}
    head |= {"command": f"python {' '.join(sys.argv)}", "commit": commit()}
    head |= {"machine": machine(), "versions": versions(), "date": time.strftime("%F")}
    write_json(output, {**head, "rows": rows})


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(PLUGIN.parent))
    main()
