"""The toy of two styles: its text, what is counted, and its rows."""

import math
import random
import runpy
import sys
from collections import Counter
from unittest import mock

import pytest
from commands import ROOT

from sbnmt_plugin.tools.recipes import systems
from sbnmt_plugin.tools.recipes.settings import load_recipe, training_options
from sbnmt_plugin.tools.text import read_lines

FOLDER = ROOT / "examples" / "toy_styles"
CHECK = runpy.run_path(str(FOLDER / "check.py"))
PREPARE = runpy.run_path(str(FOLDER / "prepare.py"))
STYLES = PREPARE["STYLES"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """(source, target) of the training text; (source, target, other) of the test's."""
    folder = tmp_path_factory.mktemp("text")
    with mock.patch.object(sys, "argv", ["prepare.py", "--output", str(folder)]):
        runpy.run_path(str(FOLDER / "prepare.py"), run_name="__main__")

    def rows(split, *ends):
        return list(zip(*(read_lines(folder / f"{split}.{end}") for end in ends)))

    return {
        "train": rows("train", "src", "tgt"),
        "test": rows("test", "src", "tgt", "tgt.2"),
    }


def style_of(target):
    """Which style a text is in; its words are of one."""
    (style,) = {i for i, s in enumerate(STYLES) for w in target.split() if w[-1] in s}
    return style


# the words


def assert_two_phrases_each(pairs):
    """Every source word has a phrase of one or two words in each style.

    Those are the words that all sentences of the style have which have the source word.
    """
    having = {}
    for source, target in pairs:
        style = style_of(target)
        for word in set(source.split()):
            known = having.setdefault((word, style), Counter())
            known.update(set(target.split()))
            known[None] += 1
    words = {word for word, _ in having}
    owners = {}
    for (word, style), known in having.items():
        count = known.pop(None)
        assert count > 15, (word, style)
        own = [form for form, seen in known.items() if seen == count]
        assert 1 <= len(own) <= 2, (word, own)
        for form in own:
            assert owners.setdefault(form, word) == word
    assert len(having) == 2 * len(words)
    return words


def test_every_word_has_a_phrase_of_each_style(text):
    words = assert_two_phrases_each(text["train"])
    assert len(words) == PREPARE["WORDS"]
    often = sum(len(source.split()) for source, _ in text["train"]) / len(words)
    assert 70 < often < 90


def test_a_word_without_a_phrase_of_its_own_is_noticed(text):
    word = text["train"][0][0].split()[0]
    pairs = [
        (source, target)
        for source, target in text["train"]
        if word not in source.split() or style_of(target) == 0
    ]
    with pytest.raises(AssertionError):
        assert_two_phrases_each(pairs)


def test_a_sentence_is_of_one_style_and_its_partner_of_the_other(text):
    for _, target, other in text["test"]:
        assert {style_of(target), style_of(other)} == {0, 1}
    counts = Counter(style_of(target) for _, target in text["train"])
    assert abs(counts[0] - counts[1]) < 4 * math.sqrt(len(text["train"]))


# the coin


def share_guessed(pairs, tests):
    """How often naive Bayes guesses a style by the source's words."""
    seen = [Counter(), Counter()]
    for source, target in pairs:
        seen[style_of(target)].update(source.split())
    right = 0
    for source, target, *_ in tests:
        words = source.split()
        one, other = (sum(math.log(1 + s[w]) for w in words) for s in seen)
        right += (other > one) == style_of(target)
    return right / len(tests)


def test_the_source_does_not_show_the_style(text):
    deviation = 0.5 / math.sqrt(len(text["test"]))
    assert abs(share_guessed(text["train"], text["test"]) - 0.5) < 4 * deviation


def test_a_style_that_the_source_shows_is_guessed(text):
    """By its first letter, say; the other style's text stands in for it."""

    def honest(source, target, other):
        wanted = source[0] < "m"
        return source, (target if style_of(target) == wanted else other)

    told = [honest(*row) for row in text["test"]]
    assert share_guessed(told[:400], told[400:]) > 0.6


# the order


def test_neighbours_change_places_by_their_classes():
    word = PREPARE["Word"]
    for trails, expected in [
        ("10", "10"),
        ("0110", "0132"),
        ("110", "021"),
        ("100", "102"),
        ("01", "01"),
    ]:
        words = [word(str(i), ("", ""), c == "1") for i, c in enumerate(trails)]
        found = "".join(w.text for w in PREPARE["reordered"](words))
        assert found == expected, trails


# what is counted


def mixed(pairs):
    """Outputs whose every phrase has a coin of its own, without a fault else."""
    generator = random.Random(1)
    language = {w.text: w for w in PREPARE["invent_words"](random.Random(1))}
    return [
        " ".join(
            word.phrases[generator.randrange(2)]
            for word in PREPARE["reordered"]([language[w] for w in source.split()])
        )
        for source, *_ in pairs
    ]


def test_a_text_of_one_style_is_right_whichever_it_is(text):
    _, ours, others = zip(*text["test"])
    for output in ours, others:
        found = CHECK["described"](list(output), [list(ours), list(others)])
        assert found == {"one style": 100, "right": 100, "words off": 0}


def test_a_mixed_text_is_noticed(text):
    _, ours, others = zip(*text["test"])
    found = CHECK["described"](mixed(text["test"]), [list(ours), list(others)])
    assert found["one style"] < 10 and found["right"] < 10


def test_what_is_of_one_style():
    one, other = (f"bab{style[0]} dad{style[1]}" for style in STYLES)
    assert CHECK["of_one_style"](one) and CHECK["of_one_style"](other)
    for text in "", f"{one} {other}", f"{one} baba", "baba <unk>":
        assert not CHECK["of_one_style"](text)


def test_words_too_many_and_too_few_are_counted():
    references = [["a b c", "d"], ["e", "f g"]]
    found = CHECK["described"](["a b c d e", ""], references)
    assert found["words off"] == 1.5  # from the nearer reference


# the rows


def test_gold_is_all_that_nart_gold_has_of_its_own():
    recipe = load_recipe(FOLDER, small=False)
    options = [training_options(recipe, name) for name in ("nart", "nart-gold")]
    assert options[0] == options[1]
    one, other = (systems.SYSTEMS[name] for name in ("nart", "nart-gold"))
    assert (one.data, other.data) == ("kd", "gold")
    assert one.decode == other.decode and one.title != other.title
