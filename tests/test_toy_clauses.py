"""The toy of several open choices: its text, and what its check says of a run."""

import json
import re
import runpy
from itertools import pairwise

import in_process
import pytest
from commands import ROOT
from steps import put

FOLDER = ROOT / "examples" / "toy_clauses"
CHECK = runpy.run_path(str(FOLDER / "check.py"))
ENDINGS = ("in", "o", "u")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Source and target of the test set, as words."""
    folder = tmp_path_factory.mktemp("text")
    in_process.run_script(FOLDER / "prepare.py", "--output", folder)
    lines = [
        (folder / f"test.{end}").read_text().splitlines() for end in ("src", "tgt")
    ]
    return [(source.split(), target.split()) for source, target in zip(*lines)]


def clauses(words):
    """Without the marker, divided at the commas."""
    return [part.split() for part in " ".join(words[1:]).split(",")]


def ending(word):
    return next(end for end in ENDINGS if word.endswith(end))


STEP = {"o": 0, "in": 1, "u": 2}


def assert_endings_add_up(pairs):
    """Within a clause, in the direction that the marker says, each word has added one
    and the same number wherever it stands; at the clause's beginning to nothing."""
    classes = {}
    for source, target in pairs:
        parts = list(zip(clauses(source), clauses(target)))
        half = {"left": len(parts), "right": 0, "both": len(parts) / 2}[source[0]]
        for place, (given, made) in enumerate(parts):
            assert len(given) == len(made) in (4, 5)
            if place >= half:
                given, made = given[::-1], made[::-1]
            numbers = [0, *(STEP[ending(word)] for word in made)]
            for word, (before, after) in zip(given, pairwise(numbers)):
                added = (after - before) % 3
                assert classes.setdefault(word, added) == added, word
    assert sorted(classes.values()).count(0) == 10 and len(classes) == 30


def test_endings_add_up_within_clauses(pairs):
    assert len(pairs) == 600
    assert_endings_add_up(pairs)


def test_endings_that_go_on_across_clauses_are_noticed(pairs):
    """As if nothing began anew at a comma."""
    joined = [
        ([w for w in source if w != ","], [w for w in target if w != ","])
        for source, target in pairs
    ]
    with pytest.raises(AssertionError):
        assert_endings_add_up(joined)


def test_kinds_are_those_of_the_markers(pairs):
    found = {}
    for source, _ in pairs:
        kind = CHECK["kind_of"](" ".join(source))
        found.setdefault(kind, set()).add((source[0] == "both", len(clauses(source))))
    whole = {(False, count) for count in (2, 4, 6)}
    open_ = {f"{n} open": {(True, 2 * n)} for n in (1, 2, 3)}
    assert found == {"alone": whole, **open_}


GOLD = [
    ("left a , b", "li x , y"),
    ("both a , b", "bo x , y"),
    ("both a , b , a , b", "bo x , y , x , y"),
    ("both a , b , a , b , a , b", "bo x , y , x , y , x , y"),
]


def decoded(work, wrong):
    """A sweep's folder.

    Args:
        wrong: row and beam -> numbers of the lines that are.
    """
    put(work / "text" / "test.src", *(source for source, _ in GOLD))
    put(work / "text" / "test.tgt", *(target for _, target in GOLD))
    runs = [{"system": name, "beam": beam, "BLEU": 1.0} for name, beam in wrong]
    put(work / "beam-sweep.json", json.dumps({"runs": runs}))
    for (name, beam), lines in wrong.items():
        folder = work / "beam-sweep.json.runs" / "test" / f"{name}-beam-{beam}"
        texts = ["z" if i in lines else target for i, (_, target) in enumerate(GOLD)]
        put(
            folder / "generate-test.txt",
            *(f"H-{i}\t0\t{t}" for i, t in enumerate(texts)),
        )


def test_seeds_of_a_row_are_shown_together(tmp_path, capsys):
    decoded(tmp_path, {("sb-lambda0", 4): {3}, ("sb", 2): {2, 3}, ("sb@2", 2): {}})
    words = ["--work", tmp_path, "--json", tmp_path / "found.json"]
    in_process.run_script(FOLDER / "check.py", *words)
    output = capsys.readouterr().out
    assert re.search(r"\| sb +\| +2 \| .*100.0 ± 0.0 \| +50.0 ± 70.7", output)
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    kinds = {"alone": 100, "1 open": 100, "2 open": 0, "3 open": 0}
    assert rows[1] == {"row": "sb", "beam": 2, **kinds}
    assert [(r["row"], r["3 open"]) for r in rows[1:]] == [("sb", 0), ("sb@2", 100)]


def test_without_a_sweep_there_is_one_clear_error(tmp_path):
    put(tmp_path / "text" / "test.src", "left a")
    put(tmp_path / "text" / "test.tgt", "li x")
    with pytest.raises((FileNotFoundError, ValueError), match=r"beam-sweep\.json"):
        in_process.run_script(FOLDER / "check.py", "--work", tmp_path)
