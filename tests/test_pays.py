"""Numbers of both pages of what pays and of the README's first results are files'."""

import functools
import json
import re
from collections import defaultdict
from statistics import mean, stdev

import pytest
from commands import ROOT
from pages import rows_of, section_of, text_of

from sbnmt_plugin.tools.recipes.rows import RESCORED
from sbnmt_plugin.tools.results.sweep import system_and_seed

PAGES = ("docs/pays.md", "docs/pays-measured.md")
MEAN = re.compile(r"(?:[+−] )?\d+(?:\.\d+)? ± \d+(?:\.\d+)?")
SEEDS = [1, 2, 3]
FOLDERS = {  # beginning of a section's heading -> whose numbers it has
    "What to type": "multi30k",
    "In short": "multi30k",
    "Multi30k": "multi30k",
    "Why not more": "multi30k",
    "What it costs": "multi30k",
    "Costs of the earlier chains": "multi30k",
    "What interaction gives": "toy_clauses",
    "The toy": "toy",
    "CMUdict": "g2p_cmudict",
    "Technical documentation": "techdocs_zh_en",
}
COMPARED = "Interaction against its twin"  # a section
DIFFERENCES = [  # of it, in its order
    ("toy/seeds", "sb-shift+rescored", "sb-lambda0+rescored"),
    (
        "multi30k/seeds-small",
        "sb-noise-shift-dropped+rescored",
        "sb-noise-lambda0+rescored",
    ),
    ("multi30k/converged-small", "sb-reader-two", "sb-lambda0"),
    ("multi30k/converged-small", "sb-reader-two+rescored", "sb-lambda0+rescored"),
    ("multi30k/converged-small", "sb-reader+rescored", "sb-noise-lambda0+rescored"),
    ("techdocs_zh_en/small", "sb-same+rescored", "sb-lambda0+rescored"),
]
# heads of tables of which no file is kept: pages of sbnmt report are not committed
WITHOUT_FILE = ["| | first four | last four |"]


@functools.cache
def read(name):
    return json.loads((ROOT / "examples" / f"{name}.json").read_text("utf-8"))


@functools.cache
def rows(name):
    """System -> seed -> row of a table."""
    found = defaultdict(dict)
    for row in read(name)["rows"]:
        system, seed = system_and_seed(row["name"])
        found[system][seed] = row
    return found


def of_seeds(values, digits=2):
    return f"{mean(values):.{digits}f} ± {stdev(values):.{digits}f}"


@functools.cache
def systems(folder):
    """System, and its means in the order of pages: as trained, in a search with λ = 0,
    rescored; or, of what the toy of open choices has right, by beams."""
    found = []
    for path in sorted((ROOT / "examples" / folder).glob("*.json")):
        name = f"{folder}/{path.stem}"
        if path.name == "open.json":
            found += by_beams(read(name))
        elif "seeds" in read(name):
            found += as_trained_and_searched(name)
    return found


def by_beams(measured):
    right = defaultdict(list)
    for line in sorted(measured, key=lambda line: line["beam"]):
        system, _ = system_and_seed(line["row"])
        for kind in ("1 open", "2 open", "3 open"):
            right[system, kind, line["beam"]].append(line[kind])
    found = defaultdict(list)
    for (system, kind, _), shares in right.items():
        found[system, kind].append(of_seeds(shares, digits=1))
    return [(system, means) for (system, _), means in found.items()]


def as_trained_and_searched(name):
    means = {
        row["name"]: f"{row['mean']:.2f} ± {row['deviation']:.2f}"
        for row in read(name)["seeds"]
        if row["seeds"] == SEEDS
    }
    found = []
    for system, of_seed in rows(name).items():
        if RESCORED in system:
            continue
        alone = [
            row["interaction"]["λ = 0"]
            for row in of_seed.values()
            if "interaction" in row
        ]
        told = [
            means.get(system),
            of_seeds(alone) if len(alone) == len(SEEDS) else None,
            means.get(system + RESCORED),
        ]
        found.append((system, [mean for mean in told if mean]))
    return found


def difference(name, system, other):
    """Of two systems, seed by seed."""
    (score,) = {row["score"] for row in read(name)["seeds"]}
    ours, others = rows(name)[system], rows(name)[other]
    assert [*ours] == [*others] == SEEDS
    apart = [ours[seed][score] - others[seed][score] for seed in SEEDS]
    sign = "+" if mean(apart) > 0 else "−"
    return f"{sign} {abs(mean(apart)):.1f} ± {stdev(apart):.1f}"


def follow(means, told):
    """Whether they are among those told, in that order."""
    left = iter(told)
    return all(mean in left for mean in means)


def told_by(line, folder):
    """Whether one system of the folder has all means of a table's line, the one that it
    names if it does, or any each of other text."""
    known = systems(folder)
    means = MEAN.findall(line)
    if not line.strip().startswith("|"):
        return all(any(mean in told for _, told in known) for mean in means)
    named = set(re.findall(r"`([a-z0-9-]+)`", line)) & {system for system, _ in known}
    return any(
        follow(means, told) for system, told in known if not named or system in named
    )


def without_ground(text):
    """Lines of the pages with a mean that is in no file of their section."""
    found = []
    for section in re.split(r"^##+ ", text, flags=re.M)[1:]:
        heading, *lines = section.splitlines()
        if heading == COMPARED:
            shown = [mean for line in lines for mean in MEAN.findall(line)]
            if shown != [difference(*names) for names in DIFFERENCES]:
                found.append(f"{heading}: {shown}")
            continue
        folders = [f for start, f in FOLDERS.items() if heading.startswith(start)]
        head = None
        for line in lines:
            in_table = line.strip().startswith("|")
            head = (head or line.strip()) if in_table else None
            if not MEAN.search(line) or head in WITHOUT_FILE:
                continue
            if not folders or not told_by(line, *folders):
                found.append(line)
    return found


def whole():
    """Both pages, one behind the other."""
    return "\n".join(map(text_of, PAGES))


def test_means_of_seeds_on_the_pages_of_what_pays_are_those_of_files():
    """Pages to files: no mean ± deviation that no committed table has."""
    text = whole()
    assert len(re.findall(r"\d\s*±|±\s*\d", text)) == len(MEAN.findall(text)) > 80
    assert all(head in text for head in WITHOUT_FILE)
    assert not without_ground(text)


def changed(text, place):
    """The text with another digit there."""
    return f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}"


def test_another_digit_of_a_mean_is_noticed():
    """Of every one but those without a file: the last digit of mean and deviation."""
    text = whole()
    noticed, unnoticed = 0, set()
    for found in MEAN.finditer(text):
        for place in found.start() + found[0].index(" ±") - 1, found.end() - 1:
            if without_ground(changed(text, place)):
                noticed += 1
            else:
                unnoticed.add(text[: found.start()].count("\n"))
    lines = text.splitlines()
    (start,) = [i for i, line in enumerate(lines) if line.strip() in WITHOUT_FILE]
    end = next(i for i in range(start, len(lines)) if "|" not in lines[i])
    assert unnoticed <= set(range(start, end))
    assert noticed > 130


@pytest.mark.parametrize(
    "table",
    [
        *("multi30k/seeds-small", "multi30k/opponent-small", "multi30k/updates-small"),
        *("techdocs_zh_en/small", "toy/seeds", "g2p_cmudict/triples"),
    ],
)
def test_the_pages_of_what_pays_show_the_means_of_seeds(table):
    """Files to pages, of tables that they show whole."""
    text = whole()
    means = read(table)["seeds"]
    assert means
    for row in means:
        shown = f"{row['mean']:.2f} ± {row['deviation']:.2f}"
        assert shown in text, f"{' and '.join(PAGES)} lack {shown}, {row['title']}"


def test_multi30ks_page_shows_what_the_length_penalty_does():
    measured, cells = read("multi30k/lenpen-small"), defaultdict(list)
    for row in measured["valid"] + measured["test"]:
        cell = f"{row['BLEU']:.2f} ({row['length ratio']:.2f})"
        cells[row["system"]].append(cell)
    text = text_of("examples/multi30k/earlier.md") + text_of(
        "examples/multi30k/README.md"
    )
    text = text.replace("**", "")
    assert len(cells) == 6
    for found in cells.values():
        assert f"| {' | '.join(found)} |" in text
    assert f"| {' | '.join(found[::-1])} |" not in text


# the README

DECIDES = (
    *("teacher-l2r", "rerank", "transformer-pl", "teacher-both", "sb-lambda0"),
    *("sb-reader-two", "sb-noise-lambda0", "sb-reader", "sb"),
)


def bleu(system):
    """What a cell of the README says of a row: the seeds' mean, or of one."""
    of_seed = rows("multi30k/converged-small").get(system, {})
    scores = [row["BLEU"] for row in of_seed.values()]
    if len(scores) > 1:
        assert [*of_seed] == SEEDS
        return of_seeds(scores)
    return f"{scores[0]:.2f}" if scores else ""


def test_the_readmes_first_results_are_those_of_the_file():
    shown = rows_of(section_of("Results"))
    assert len(shown) == len(DECIDES)
    for line, name in zip(shown, DECIDES):
        seeds = rows("multi30k/converged-small")[name]
        cells = [str(len(seeds)), bleu(name), bleu(name + RESCORED)]
        assert [cell.replace("**", "") for cell in line[1:]] == cells, line


def test_the_readmes_first_rows_have_as_many_updates():
    found = rows("multi30k/converged-small")
    updates = {
        name: sum(stage["updates"] for stage in row.get("stages", [row]))
        for name in DECIDES
        for row in found[name].values()
        if "updates" in row
    }
    assert {updates.pop(name) for name in DECIDES if "reader" in name} == {1000}
    assert {*updates.values()} == {5748}
