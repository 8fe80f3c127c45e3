"""The toy that has to count: its text, its links, and what is counted."""

import json
import runpy
from collections import Counter

import in_process
import pytest
from commands import ROOT

from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.row_steps import RowSteps
from sbnmt_plugin.tools.recipes.rows import Row, asked_rows
from sbnmt_plugin.tools.recipes.shell_script import WORK
from sbnmt_plugin.tools.recipes.step import in_order
from sbnmt_plugin.tools.results import table
from sbnmt_plugin.tools.results import work_folder_rows as results
from sbnmt_plugin.tools.word_alignment import parse_gold

FOLDER = ROOT / "examples" / "toy_sort"
CHECK = runpy.run_path(str(FOLDER / "check.py"))


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Lines of the test set, by the ends of their files' names."""
    folder = tmp_path_factory.mktemp("text")
    in_process.run_script(FOLDER / "prepare.py", "--output", folder)
    return {
        end: (folder / f"test.{end}").read_text().splitlines()
        for end in ("src", "tgt", "links")
    }


def assert_links_are_of_copies(sources, targets, lines):
    """The k-th copy in the one is that in the other, by the language's own words."""
    meaning = {}
    for source, target, line in zip(sources, targets, lines):
        words, parts = source.split(), target.split()
        links, _ = parse_gold(line)
        assert {j for _, j in links} == set(range(len(parts)))
        assert {i for i, _ in links} == set(range(len(words)))
        last = {}
        for i, word in enumerate(words):
            places = sorted(j for k, j in links if k == i)
            own = tuple(parts[j] for j in places)
            assert meaning.setdefault(word, own) == own
            assert places == list(range(places[0], places[0] + len(own)))
            assert last.get(word, -1) < places[0]
            last[word] = places[0]
    return meaning


def test_links_are_those_of_the_copies(text):
    assert len(text["src"]) == 500
    meaning = assert_links_are_of_copies(text["src"], text["tgt"], text["links"])
    assert len(meaning) == 30 == len(set(meaning.values()))
    assert Counter(map(len, meaning.values())) == {1: 15, 2: 15}


def test_links_of_another_sentence_are_noticed(text):
    with pytest.raises(AssertionError):
        assert_links_are_of_copies(
            text["src"], text["tgt"], [*text["links"][1:], text["links"][0]]
        )


def test_a_translation_is_sorted_and_has_every_copy(text):
    """One order fits all sentences."""
    before = set()
    for source, target in zip(text["src"], text["tgt"]):
        assert 6 <= len(source.split()) <= 14 and len(set(source.split())) <= 4
        words = list(dict.fromkeys(part[:3] for part in target.split()))
        before |= {(a, b) for i, a in enumerate(words) for b in words[i + 1 :]}
    assert not [pair for pair in before if pair[::-1] in before]


def test_errors_of_number_are_differences_of_multisets():
    outputs, references = ["a b b", "c d", ""], ["b a b", "c c d d", "e f g"]
    found = CHECK["errors_of_number"](outputs, references)
    assert found == (0, 50)  # c, d, e, f, g of ten
    found = CHECK["errors_of_number"](["a a x", "c"], ["a b", "c"])
    assert found == pytest.approx((200 / 3, 100 / 3))


def test_links_to_other_copies_are_counted():
    gold, found = {(0, 0), (2, 1), (1, 2)}, {(2, 0), (0, 1), (0, 2)}
    assert CHECK["at_a_copy"](["a b a"], [found], [gold]) == pytest.approx(200 / 3)


def test_attention_is_compared_with_links_that_are_known():
    settings = load_recipe(FOLDER, small=False)

    def compared(**changes):
        steps = RowSteps(Run({**settings, **changes}, WORK, FOLDER))
        names = ["rnnsearch", "teacher-r2l", "teacher-l2r", "rerank", "sb"]
        found = in_order(steps.targets(asked_rows([*names, "sb+rescored"])))
        return {s.name: s.words for s in found if s.name.startswith("aer/")}

    found = compared()
    assert list(found) == ["aer/rnnsearch", "aer/teacher-l2r", "aer/sb"]
    words = [str(word) for word in found["aer/rnnsearch"]]
    assert words[words.index("--gold") + 1] == "$work/text/test.links"
    assert "--sb-direction" in words and "--sb-direction" not in found["aer/sb"]
    assert not compared(links=False)


def test_its_rate_is_a_column(tmp_path):
    settings = load_recipe(FOLDER, small=False)
    score = {"tokenised BLEU": {"score": 50.0}}
    for folder, found in ("results", score), ("results/aer", {"AER": {"score": 12.5}}):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ba.json").write_text(json.dumps(found))
    row = results.build_row(tmp_path, settings, Row("ba"))
    assert row["AER"] == 12.5
    known = {"rows": [row], "signatures": {}}
    assert "AER, %" in table.main_table(known)[0]
    del row["AER"]
    assert "AER, %" not in table.main_table(known)[0]
