"""The numbers of docs/findings.md are those of the committed results."""

import functools
import json
import re
from decimal import Decimal
from statistics import mean

import pytest
from commands import ROOT
from pages import text_of

from sbnmt_plugin.tools.results.sweep import system_and_seed

PAGE = "docs/findings.md"
SMALL, SETS = "multi30k/converged-small", "multi30k/sets-small"
LARGER, NOISE = "multi30k/full", "multi30k/again-small"
CMUDICT, DOCUMENTATION = "g2p_cmudict/updates", "techdocs_zh_en/updates-small"
RESCORED = "+rescored"
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


def score(name, system, key="BLEU"):
    return mean(row[key] for row in rows(name, system))


def apart(name, system, other, key="BLEU"):
    return score(name, system, key) - score(name, other, key)


def bits_read(name, system):
    read_by = [row["reading"] for row in rows(name, system)]
    return mean(bits["λ = 0"] - bits["as trained"] for bits in read_by)


def lost_alone(name, system):
    """BLEU that a search with λ = 0 loses."""
    (row,) = rows(name, system)
    return row["interaction"]["as trained"] - row["interaction"]["λ = 0"]


def on_toy(system, beam):
    """Mean BLEU of the toy's seeds in a sweep over beams."""
    runs = read("toy/beams")["runs"]
    of_system = [r for r in runs if system_and_seed(r["system"])[0] == system]
    return mean(run["BLEU"] for run in of_system if run["beam"] == beam)


def three_open(system, beam):
    """Share of toy_clauses' sentences with three open places that are right, in %."""
    lines = [x for x in read("toy_clauses/open")["rows"] if x["beam"] == beam]
    return mean(x["3 open"] for x in lines if system_and_seed(x["row"])[0] == system)


def times_slower():
    speeds = {
        (run["system"], run["beam"]): run["sentences/s"]
        for run in read("toy_clauses/beams")["runs"]
    }
    return speeds["sb", 2] / speeds["sb-lambda0+rescored", 32]


def shown(value):
    return f"{round(value, 1):.1f}"


def signed(value):
    """A difference as the page's tables have it."""
    text = shown(abs(value))
    return text if text == "0.0" else ("+" if value > 0 else "−") + text


# (beginning of a line, table, system, its baseline without interaction)
INTERACTION = [
    ("as in the paper, `--small`, test2016", SMALL, "sb", "sb-lambda0"),
    ("as in the paper, larger, four sets", LARGER, "sb", "sb-lambda0"),
    ("first stage on gold text, `--small`, four sets", SETS, "sb-staged", "sb-lambda0"),
    ("first stage on gold text, larger, four sets", LARGER, "sb-staged", "sb-lambda0"),
    (
        "noisy gold text added, `--small`, test2016",
        *(NOISE, "sb-noise-shift-dropped", "sb-noise-lambda0"),
    ),
    ("own words, no teachers, `--small`, four sets", SETS, "sb-own", "teacher-both"),
    ("reader, `--small`, test2016", SMALL, "sb-reader-two", "sb-lambda0"),
    ("reader, `--small`, four sets", SETS, "sb-reader-two", "sb-lambda0"),
    ("reader, larger, four sets", LARGER, "sb-reader-two", "sb-lambda0"),
]


def compared(name, system, other):
    """A difference as the page's table has it, bold where it is significant."""
    run = name.removeprefix("multi30k/")
    text = "test2016" if name in (SMALL, NOISE) else "all four sets"
    told = {"run": run, "row": system, "against": other, "text": text}
    file = "multi30k/compared-full" if name == LARGER else "multi30k/compared-small"
    found = [x for x in read(file)["rows"] if told.items() <= x.items()]
    (p,) = {row["p"] for row in found}
    difference = signed(apart(name, system, other))
    return f"**{difference}**" if p < LEVEL else difference


def interaction_table():
    for start, table, system, baseline in INTERACTION:
        cells = [
            shown(bits_read(table, system)),
            compared(table, system, baseline),
            compared(table, system + RESCORED, baseline + RESCORED),
        ]
        yield f"| {' | '.join([start, *cells])} |"


def gains_table():
    """Lines of what a Transformer gains by pseudo targets, reranking, and so on."""
    pairs = {
        "pseudo targets for a Transformer": ("transformer-pl", "teacher-l2r"),
        "rescoring, two triples without interaction": (
            "sb-lambda0+rescored",
            "sb-lambda0",
        ),
    }
    for start, pair in pairs.items():
        cells = [signed(apart(table, *pair)) for table in (SMALL, LARGER)]
        yield f"| {' | '.join([start, *cells])} |"
    reranked = signed(apart(SMALL, "rerank", "teacher-l2r"))
    yield f"| reranking with an R2L Transformer | {reranked} | not run |"


def sentences():
    """Parts of the page's sentences, in its order, made from the results."""
    leads = [apart(x, "sb", "teacher-l2r") for x in (SMALL, LARGER)]
    rescored = [apart(x, "sb+rescored", "teacher-l2r") for x in (SMALL, LARGER)]
    yield f"leads by {shown(leads[0])} BLEU with `--small` on test2016"
    yield f"The larger model leads by {shown(leads[1])} on four sets"
    yield f"raises these leads to {shown(rescored[0])} and {shown(rescored[1])}."
    best = apart(SMALL, "sb-lambda0+rescored", "teacher-l2r")
    yield f"is {shown(best)} BLEU above the Transformer on gold text"
    yield f"with {shown(score(CMUDICT, 'teacher-r2l', 'WER'))} % wrong words"
    saved = apart(CMUDICT, "teacher-r2l", "rerank", "WER")
    yield f"saves {shown(saved)} points"
    costs = apart(CMUDICT, "sb", "sb-lambda0", "WER")
    yield f"interaction costs {shown(costs)} points of wrong words"
    costs = apart(CMUDICT, "sb+rescored", "sb-lambda0+rescored", "WER")
    yield f"and {shown(costs)} after rescoring"
    lost = lost_alone(SETS, "sb-staged")
    yield f"the staged `--small` model loses {shown(lost)} BLEU"
    yield f"interaction with a beam of 2 gets {shown(three_open('sb', 2))} %"
    right = three_open("sb-lambda0+rescored", 32)
    yield f"A rescored beam of 32 without interaction gets {shown(right)} %"
    yield f"and is {round(times_slower())} times slower"
    systems = "sb-shift+rescored", "sb-lambda0+rescored"
    small, large = (on_toy(systems[0], k) - on_toy(systems[1], k) for k in (4, 8))
    yield f"interaction leads by {shown(small)} BLEU with a beam of 4"
    yield f"With a beam of 8 it {'leads' if large > 0 else 'does not lead'}."
    few, many = "teacher-l2r", "transformer-long"
    times = score(DOCUMENTATION, many, "updates") / score(DOCUMENTATION, few, "updates")
    bleu = [shown(score(DOCUMENTATION, system)) for system in (few, many)]
    yield f"{shown(Decimal(times))} times the updates raised a Transformer from"
    yield f"from {bleu[0]} to {bleu[1]} BLEU"
    held = score(DOCUMENTATION, "sb-lambda0-long")
    yield f"held back a model of the longer one at {shown(held)} BLEU"


def missing(text):
    """What the results say and the text does not."""
    text = text.replace("\n", " ")
    told = [*interaction_table(), *gains_table(), *sentences()]
    return [part for part in told if part not in text]


def test_the_numbers_of_the_findings_are_those_of_the_results():
    text = text_of(PAGE)
    assert not missing(text)
    lines = re.findall(r"^\| .*\d\.\d.*$", text, re.M)
    assert len(lines) == len([*interaction_table(), *gains_table()])


def test_another_digit_of_a_finding_is_noticed():
    """Every number with a decimal, each of whose last digits is changed in turn."""
    text = text_of(PAGE)
    places = [found.end() - 1 for found in re.finditer(r"\d\.\d\b", text)]
    assert len(places) > 45
    unnoticed = []
    for place in places:
        digit = (int(text[place]) + 1) % 10
        changed = f"{text[:place]}{digit}{text[place + 1 :]}"
        if not missing(changed):
            unnoticed.append(text[place - 40 : place + 1])
    assert not unnoticed


def test_another_significance_is_noticed():
    text = text_of(PAGE)
    bold, plain = "**−1.0** |", "+0.2 | +0.2 |"
    assert missing(text.replace(bold, "−1.0 |"))
    assert missing(text.replace(plain, "+0.2 | **+0.2** |"))


def test_findings_without_a_result_are_refused():
    with pytest.raises(AssertionError, match=r"full\.json has no row rerank"):
        apart(LARGER, "rerank", "teacher-l2r")
