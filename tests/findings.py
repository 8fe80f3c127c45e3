"""Reads the committed results that docs/findings.md tells: scores, differences, p."""

import functools
import json
from decimal import ROUND_HALF_UP, Decimal
from statistics import mean

from commands import ROOT

from sbnmt_plugin.tools.results.sweep import system_and_seed

BITEXT, BITEXT_CPU = "bitext/multi30k-small", "bitext/multi30k-small-cpu"
TRIAL, TATOEBA = "bitext/multi30k-short", "bitext/tatoeba-small"
SMALL, SETS = "multi30k/converged-small", "multi30k/sets-small"
LARGER, NOISE = "multi30k/full", "multi30k/again-small"
SHORT, SHORT_SEEDS = "multi30k/results-small", "multi30k/seeds-small"
COMPARED = "multi30k/compared-full", "multi30k/compared-small"
PENALTIES = "multi30k/lenpen-test-small"
CMUDICT, DOCUMENTATION = "g2p_cmudict/updates", "techdocs_zh_en/updates-small"
TRIPLES, PAPER = "g2p_cmudict/triples", "g2p_cmudict/more"
FIRST, FOUR = "test2016", "all four sets"
TEXTS = {SMALL: FIRST, NOISE: FIRST, SETS: FOUR, LARGER: FOUR}
RESCORED = "+rescored"
BLEU = "tokenised BLEU"
LEVEL = Decimal("0.05")  # of significance


@functools.cache
def read(name):
    path = ROOT / "examples" / f"{name}.json"
    return json.loads(path.read_text("utf-8"), parse_float=Decimal)


def rows(name, system):
    """Rows of a system, one a seed."""
    found = [r for r in read(name)["rows"] if system_and_seed(r["name"])[0] == system]
    assert found, f"{name}.json has no row {system}"
    return found


def score(name, system, key=BLEU):
    return mean(row[key] for row in rows(name, system))


def apart(name, system, other, key=BLEU):
    return score(name, system, key) - score(name, other, key)


def bits_read(name, system):
    read_by = [row["reading"] for row in rows(name, system)]
    return mean(bits["λ = 0"] - bits["as trained"] for bits in read_by)


def on_beam(name, system, beam, key="BLEU"):
    """Mean over the seeds of a sweep over beams, or over length penalties."""
    runs = read(name)["runs"]
    of_system = [r for r in runs if system_and_seed(r["system"])[0] == system]
    return mean(run[key] for run in of_system if run["beam"] == beam)


def three_open(system, beam):
    """Share of toy_clauses' sentences with three open places that are right, in %."""
    lines = [x for x in read("toy_clauses/open")["rows"] if x["beam"] == beam]
    return mean(x["3 open"] for x in lines if system_and_seed(x["row"])[0] == system)


def times_slower():
    searches = ("sb", 2), ("sb-lambda0+rescored", 32)
    fast, slow = (on_beam("toy_clauses/beams", *x, "sentences/s") for x in searches)
    return fast / slow


def shown(value, digits="0.1"):
    """A number as the page has it; a half is rounded up."""
    return f"{Decimal(value).quantize(Decimal(digits), ROUND_HALF_UP)}"


def signed(value):
    """A difference as the page's tables have it."""
    text = shown(abs(value))
    return text if text == "0.0" else ("+" if value > 0 else "−") + text


def bootstrap(name, system, other, text=None):
    """Difference and p of two rows by the bootstrap; None where there is none."""
    told = {"run": name.removeprefix("multi30k/"), "row": system, "against": other}
    told["text"] = text or TEXTS.get(name, FIRST)
    lines = [line for file in COMPARED for line in read(file)["rows"]]
    found = [x for x in lines if told.items() <= x.items()]
    return (found[0]["difference"], found[0].get("p")) if found else (None, None)


def p_of_seeds(name, system, other):
    """p of the table of seeds that a file may have."""
    found = [x for x in read(name).get("seeds", []) if x["name"] == system]
    return found[0]["p"].get(other) if found else None


def compared(name, system, other):
    """A difference as the page's tables have it, bold where it is significant."""
    difference, p = bootstrap(name, system, other)
    if difference is None:
        difference = apart(name, system, other)
    if p is None:
        p = p_of_seeds(name, system, other)
    significant = p is not None and p < LEVEL
    return f"**{signed(difference)}**" if significant else signed(difference)
