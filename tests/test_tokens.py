"""sbnmt tokenise: splitting into words, and undoing it."""

import unicodedata
from unittest import mock

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_text import BLANKS, LETTERS, LINE, WORDS
from steps import call, put

from sbnmt_plugin.tools import tokens
from sbnmt_plugin.tools.commands import tokenise

ANY = pytest.mark.parametrize("language", ["de", "en", "fr", "ru", "hi", "ko", "zh"])


def normal(line):
    return " ".join(unicodedata.normalize("NFC", line).replace("\ufeff", "").split())


def test_tokenising_is_undone():
    lines = ["Ein Mann, der läuft.", "“Nein!” ruft sie."]
    split = tokens.tokenise(lines, "de")
    assert split[0] == "Ein Mann , der läuft ."
    assert tokens.detokenise(split, "de")[0] == lines[0]
    assert tokens.tokenise(lines, "de", lowercase=True)[0].startswith("ein mann")


@settings(deadline=None, max_examples=200)
@given(line=LINE)
def test_any_line_comes_back_that_is_split_at_white_space_alone(line):
    (back,) = tokens.detokenise(tokens.tokenise([line], "none"), "none")
    assert back == normal(line)


def assert_words_come_back(language, examples=100):
    """Words of letters, marks and joiners, of any script, between any blanks."""

    @settings(deadline=None, max_examples=examples, database=None)
    @given(words=WORDS, blank=st.sampled_from(BLANKS))
    def check(words, blank):
        line = blank.join(words)
        (split,) = tokens.tokenise([line], language)
        assert split.split() == normal(line).split(), "a word is torn"
        assert tokens.changed_lines([line], language) == ([], 1)

    check()


@ANY
def test_words_of_every_script_come_back_whole(language):
    assert_words_come_back(language)


@given(LINE)
def test_any_line_comes_back_from_characters(line):
    split = tokens.tokeniser("characters")(line)
    assert tokens.detokenise([split], "characters") == [
        tokens.normal_form(line, "characters")
    ]


def test_ideographs_stand_alone_and_other_words_stay_whole():
    split = tokens.tokenise(["我在abc,(d) 北京。"], "characters")
    assert split == ["我 在 abc,(d) 北 京 。"]
    assert tokens.detokenise(split, "characters") == ["我在abc,(d)北京。"]


@pytest.mark.parametrize(
    ("language", "name"), [("de", "PLAIN"), ("hi", "PLAIN"), ("zh", "TORN")]
)
def test_words_would_be_torn_by_the_rules_of_moses_and_jieba(language, name):
    rule = regex.compile("(?s).*" if name == "PLAIN" else "(?!)")
    with (
        mock.patch.object(tokens, name, rule),
        pytest.raises(AssertionError, match="a word is torn"),
    ):
        assert_words_come_back(language)


@ANY
def test_a_letter_that_is_written_in_two_ways_is_one(language):
    composed, decomposed = "Schülerin", "Schu\u0308lerin"
    assert tokens.tokenise([decomposed], language) == [composed]


def test_joined_signs_stay_together():
    line = "so 👨\u200d👩\u200d👧 und ❤\ufe0f ja 👍🏽 da"
    for language in ("de", "zh"):
        assert tokens.tokenise([line], language) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "访问https://example.com/a?b=1或写信给a@b.com。",
        "按Ctrl+C（或F10）退出，10:30开始。",
        "运行pip install -r a.txt --quiet命令, 价格是$5.50 (含税) 50%。",
        "主页文件「index.html」由Łukasz和Stéphane维护，カタカナ한국어 문장。",
    ],
)
def test_signs_and_names_in_chinese_come_back(line):
    (back,) = tokens.detokenise(tokens.tokenise([line], "zh"), "zh")
    assert back.replace(" ", "") == line.replace(" ", "")
    for word in regex.findall(r"[!-~]+(?: -[!-~]+)*", line):
        assert word in back


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("hi", "यह एक किताब है। वह (राम) गया॥"),
        ("mni", "ꯑꯁꯤ꯫"),
        ("yue", "我哋今日去，好唔好？佢話：「好。」Tom都去(Ok)。"),
        ("ja", "今日は、いい天気ですね。「はい」と言った（笑）。Tomは30歳。"),
        ("de", "Wie geht's? Gibt's um 10:30:15 Uhr 'so' was? Kapitel 2: 3 Wörter."),
        ("nl", "Auto's en foto's zijn 's zondags hier."),
        ("nl", "Hij woont in 's-Gravenhage."),
        ("pt", "Um copo d'água às 9:05, com O'Brien."),
        ("en", "It's 10:30."),
    ],
)
def test_signs_within_words_and_at_the_ends_of_sentences_come_back(language, line):
    assert tokens.changed_lines([line], language) == ([], 1)


def test_languages_are_known_by_any_spelling_of_their_code():
    for spelt, code in ("zh_TW", "zh"), ("DE", "de"), ("de-AT", "de"), ("None", "none"):
        assert tokens.language_code(spelt) == code


@pytest.mark.parametrize("language", ["english", "ger", "xx", "", "cmn"])
def test_an_unknown_language_is_refused_with_those_that_are_known(language):
    for step in tokens.tokenise, tokens.detokenise:
        with pytest.raises(ValueError, match=r"one of as, .* none, .*zh, but is '"):
            step(["a"], language)


def test_lines_that_do_not_come_back_are_told_of_once(tmp_path, capsys):
    text = put(tmp_path / "text", "Gut.", "“Nein” , sagt er", "“Ja”", "Gut")
    call(tokenise, "--language", "de", text, tmp_path / "out")
    said = capsys.readouterr().err.splitlines()[-1]
    assert "50.0 % of the lines back otherwise (4 tried), line 2 for one" in said
    call(tokenise, "--language", "none", text, tmp_path / "out")
    assert "otherwise" not in capsys.readouterr().err


@settings(deadline=None, max_examples=100)
@given(
    lines=st.lists(LINE, min_size=1, max_size=4), language=st.sampled_from(["zh", "de"])
)
def test_what_does_not_come_back_is_found(lines, language):
    back = tokens.detokenise(tokens.tokenise(lines, language), language)
    wanted = [tokens.normal_form(line, language) for line in lines]
    changed = [i for i, pair in enumerate(zip(back, wanted)) if pair[0] != pair[1]]
    assert tokens.changed_lines(lines, language) == (changed, len(lines))


def test_a_sample_is_spread_over_a_long_text():
    lines = [*["Gut."] * 1500, *["„Nein“"] * 1500]
    changed, tried = tokens.changed_lines(lines, "de")
    assert tried == 1000 and len(changed) == 500 and min(changed) == 1500


def test_the_alphabets_are_of_many_scripts():
    names = {unicodedata.name(letters[0]).split()[0] for letters in LETTERS}
    assert len(names) >= 8
