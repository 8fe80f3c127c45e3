"""The toy of four styles: its text, what is counted, and its rows."""

import random
import runpy
from collections import Counter, defaultdict

import in_process
import pytest
from commands import ROOT

from sbnmt_plugin.tools.recipes import systems
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.stages import training_options
from sbnmt_plugin.tools.text import read_lines

FOLDER = ROOT / "examples" / "toy_styles"
CHECK = runpy.run_path(str(FOLDER / "check.py"))
PREPARE = runpy.run_path(str(FOLDER / "prepare.py"))
STYLES = PREPARE["STYLES"]
MANY = range(len(STYLES))


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Pairs of the training text; of the test set a source and its references."""
    folder = tmp_path_factory.mktemp("text")
    in_process.run_script(FOLDER / "prepare.py", "--output", folder)

    def rows(split, *ends):
        return list(zip(*(read_lines(folder / f"{split}.{end}") for end in ends)))

    return {
        "train": rows("train", "src", "tgt"),
        "valid": rows("valid", "src", "tgt"),
        "test": rows("test", "src", "tgt", "tgt.2", "tgt.3", "tgt.4"),
    }


def styles_of(target):
    """All styles that a text may be in; words of "i" are those of several."""
    ends = {word[-1] for word in target.split()}
    return {style for style in MANY if ends <= set(STYLES[style])}


# the sentences


def assert_every_style_of_every_source(pairs):
    """Twice in the first style, once in each other: no source shows a style."""
    texts = defaultdict(Counter)
    for source, target in pairs:
        texts[source][target] += 1
    for found in texts.values():
        assert found.total() == 5
        first = [target for target in found if styles_of(target) == {0}]
        assert [found[target] for target in first] == [2]
        others = [styles_of(target) for target in found if target not in first]
        assert set().union(*others) == {1, 2, 3}
    return set(texts)


def test_the_source_does_not_show_the_style(text):
    assert len(assert_every_style_of_every_source(text["train"])) == 800


def test_a_source_without_one_of_the_styles_is_noticed(text):
    with pytest.raises(AssertionError):
        assert_every_style_of_every_source(text["train"][1:])
    moved = [text["train"][5], *text["train"][1:]]
    with pytest.raises(AssertionError):
        assert_every_style_of_every_source(moved)


def test_no_test_sentence_is_trained_on(text):
    sources = [{row[0] for row in text[split]} for split in ("train", "valid", "test")]
    assert [len(found) for found in sources] == [800, 100, 300]
    assert len(set.union(*sources)) == 1200


def test_a_reference_is_of_its_style(text):
    for row in text["test"]:
        assert len(row) == 1 + len(STYLES)
        for style, target in enumerate(row[1:]):
            assert style in styles_of(target)


def test_neighbours_change_places_by_their_classes():
    word = PREPARE["Word"]
    cases = {"10": "10", "0110": "0132", "110": "021", "100": "102", "01": "01"}
    for trails, expected in cases.items():
        words = [word(str(i), (), c == "1") for i, c in enumerate(trails)]
        found = "".join(w.text for w in PREPARE["reordered"](words))
        assert found == expected, trails


# what is counted


def mixed(rows):
    """Outputs whose every phrase is of any style, without a fault else."""
    generator = random.Random(1)
    language = {w.text: w for w in PREPARE["invent_words"](random.Random(1))}
    return [
        " ".join(
            generator.choice(word.phrases)
            for word in PREPARE["reordered"]([language[w] for w in source.split()])
        )
        for source, *_ in rows
    ]


def test_a_text_of_one_style_is_right_and_a_mixed_one_is_not(text):
    _, *references = map(list, zip(*text["test"]))
    for output in references:
        found = CHECK["described"](output, references)
        assert found == {"one style": 100, "right": 100, "words off": 0}
    found = CHECK["described"](mixed(text["test"]), references)
    assert found["one style"] < 20 and found["right"] < 20


def test_what_is_of_one_style():
    assert CHECK["STYLES"] == STYLES
    for output in "babe", "babi", "babi babo", "babu babi":
        assert CHECK["of_one_style"](output)
    for output in "", "babe babi", "babo babu", "babi baba", "babe <unk>":
        assert not CHECK["of_one_style"](output)


def test_words_too_many_and_too_few_are_counted():
    references = [["a b c", "d"], ["e", "f g"]]
    found = CHECK["described"](["a b c d e", ""], references)
    assert found["words off"] == 1.5  # from the nearer reference


# the rows


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A run of two rows, of one epoch."""
    folder = tmp_path_factory.mktemp("styles")
    names = ["teacher-l2r", "nart-gold", "nart", "enat-phrase"]
    sizes = '"train": 4000, "valid": 100, "test": 300'
    changes = {"average": 0, "jobs": 1, "rows": names}
    recipe = in_process.shrink("toy_styles", folder / "recipe", sizes, **changes)
    in_process.make(recipe, "--work", folder / "work")
    return folder / "work"


def test_the_rows_are_trained_scored_and_counted(work, capsys):
    found = CHECK["measured"](work)
    assert list(found) == ["teacher-l2r", "nart-gold", "nart", "enat-phrase"]
    in_process.run_script(FOLDER / "check.py", "--work", work)
    output = capsys.readouterr().out
    assert all(systems.SYSTEMS[name].title in output for name in found)


def test_gold_is_all_that_nart_gold_has_of_its_own():
    recipe = load_recipe(FOLDER, small=False)
    options = [training_options(recipe, Row(name)) for name in ("nart", "nart-gold")]
    assert options[0] == options[1]
    one, other = (systems.SYSTEMS[name] for name in ("nart", "nart-gold"))
    assert (one.data, other.data) == ("kd", "gold")
    assert one.decode == other.decode and one.title != other.title
