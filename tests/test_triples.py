"""sbnmt triples: gold text and pseudo targets to triples and pairs."""

import pytest
from steps import call, imported, put

from sbnmt_plugin.symbols import RESERVED
from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import triples as make_triples


def make(tmp_path, *words, left=None, right=None):
    put(tmp_path / "g.en", "a", "b", "c")
    put(tmp_path / "g.de", "A", "B", "C")
    put(tmp_path / "l", *(left or ["0\t-1.0\tA", "1\t-1.0\tBl", "2\t-1.0\tCl"]))
    put(tmp_path / "r", *(right or ["0\t-1.0\tAr", "1\t-1.0\tBr", "2\t-1.0\tCr"]))
    command = ["--source", tmp_path / "g.en", "--target", tmp_path / "g.de"]
    command += ["--pseudo-l2r", tmp_path / "l", "--pseudo-r2l", tmp_path / "r"]
    call(make_triples, *command, "--output", tmp_path / "out" / "t", *words)
    files = [texts.read_lines(tmp_path / "out" / f"t.{s}") for s in ("en", "de", "r2l")]
    return list(zip(*files))


def test_two_triples_are_the_papers(tmp_path, capsys):
    assert make(tmp_path) == [
        ("a", "A", "A"),
        ("a", "A", "Ar"),
        ("b", "Bl", "B"),
        ("b", "B", "Br"),
        ("c", "Cl", "C"),
        ("c", "C", "Cr"),
    ]
    report = capsys.readouterr().out
    assert "1 of 6 (16.7 %) with identical texts, kept" in report
    assert report.count("source") == 5


def test_one_triple_is_of_gold_and_the_r2l_teacher(tmp_path):
    make(tmp_path)  # the files
    words = ["--source", tmp_path / "g.en", "--target", tmp_path / "g.de"]
    words += ["--output", tmp_path / "one", "--pseudo-r2l", tmp_path / "r"]
    call(make_triples, *words, "--triples", "one")
    found = [
        (tmp_path / f"one.{end}").read_text().split() for end in ("en", "de", "r2l")
    ]
    assert found == [["a", "b", "c"], ["A", "B", "C"], ["Ar", "Br", "Cr"]]
    with pytest.raises(ValueError, match="--pseudo-l2r must be given, but for --tri"):
        call(make_triples, *words, "--triples", "two")
    with pytest.raises(
        ValueError, match="--pseudo-l2r is not for --triples one, which"
    ):
        pseudo = ["--pseudo-l2r", tmp_path / "l"]
        call(make_triples, *words, *pseudo, "--triples", "one")


@pytest.mark.parametrize("symbol", RESERVED)
def test_a_reserved_symbol_gives_no_triple(tmp_path, symbol):
    with pytest.raises(ValueError, match=rf"l, line 2, must not contain {symbol}"):
        make(tmp_path, left=["0\t-1.0\tA", f"1\t-1.0\tB {symbol}"])
    found = make(tmp_path, left=["0\t-1.0\tA", "1\t-1.0\t<unk>"])
    assert ("b", "<unk>", "B") in found
    put(tmp_path / "x.de", "A", "B", f"{symbol} C")
    pair = ["--source", tmp_path / "g.en", "--target", tmp_path / "x.de"]
    pseudo = ["--pseudo-l2r", tmp_path / "l", "--pseudo-r2l", tmp_path / "r"]
    with pytest.raises(ValueError, match=rf"x.de, line 3, must not contain {symbol}"):
        call(make_triples, *pair, *pseudo, "--output", tmp_path / "t")


def test_triples_are_made_without_torch(tmp_path):
    make(tmp_path)
    words = ["--source", tmp_path / "g.en", "--target", tmp_path / "g.de"]
    words += ["--pseudo-l2r", tmp_path / "l", "--pseudo-r2l", tmp_path / "r"]
    words += ["--output", tmp_path / "again"]
    found = imported("-m", "sbnmt_plugin", "triples", *map(str, words))
    assert "sbnmt_plugin.symbols" in found
    assert not {"torch", "fairseq"} & found
    assert (tmp_path / "again.r2l").exists()


def test_six_triples_are_all_ordered_pairs(tmp_path):
    found = make(tmp_path, "--triples", "six")
    assert len(found) == 18
    assert {t[1:] for t in found if t[0] == "b"} == {
        (x, y) for x in ("B", "Bl", "Br") for y in ("B", "Bl", "Br") if x != y
    }


def test_three_triples_are_two_and_gold_text_twice(tmp_path):
    two = make(tmp_path / "two")
    three = make(tmp_path / "three", "--triples", "three")
    gold = [(text, text.upper(), text.upper()) for text in "abc"]
    assert sorted(three) == sorted([*two, *gold])
    with pytest.raises(ValueError, match="gold text twice"):
        make(tmp_path, "--triples", "three", "--drop-identical")


def test_identical_pairs_can_be_dropped(tmp_path, capsys):
    found = make(tmp_path, "--drop-identical")
    assert len(found) == 5
    assert all(l2r != r2l for _, l2r, r2l in found)
    assert "1 of 6 (16.7 %) with identical texts, left out" in capsys.readouterr().out


def test_untranslated_sentences_give_no_triple(tmp_path, capsys):
    found = make(tmp_path, left=["0\t-1.0\tA", "2\t-1.0\tCl"])
    assert {t[0] for t in found} == {"a", "c"}
    assert "3 sentences, 1 not translated" in capsys.readouterr().out


def test_shuffling_keeps_the_triples_together(tmp_path):
    plain = make(tmp_path)
    shuffled = make(tmp_path, "--shuffle", 3)
    assert shuffled != plain
    assert sorted(shuffled) == sorted(plain)


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (["7\t-1.0\tA"], "id 7 is ≥ 3 lines"),
        (["0\t-1.0\tA", "0\t-1.0\tA"], "id 0 appears twice"),
        (["A B C"], "line 1, must be id<TAB>score<TAB>text"),
    ],
)
def test_foreign_pseudo_targets_are_refused(tmp_path, left, message):
    with pytest.raises(ValueError, match=message):
        make(tmp_path, left=left)
    assert not (tmp_path / "out").exists()


def test_pairs_are_gold_and_pseudo_targets(tmp_path):
    put(tmp_path / "s.en", "a", "b", "c")
    put(tmp_path / "s.de", "A", "B", "C")
    put(tmp_path / "l2r", "0\t-1.0\tAl", "2\t-1.0\tCl")
    put(tmp_path / "r2l", "0\t-1.0\tAr", "1\t-1.0\tBr", "2\t-1.0\tCr")
    words = ["--source", tmp_path / "s.en", "--target", tmp_path / "s.de"]
    words += ["--output", tmp_path / "out", "--pseudo-l2r", tmp_path / "l2r"]
    right = ["--pseudo-r2l", tmp_path / "r2l", "--pairs"]
    call(make_triples, *words, *right, "pl-pr")
    assert texts.read_lines(tmp_path / "out.en") == list("aaaccc")
    assert texts.read_lines(tmp_path / "out.de") == ["A", "Al", "Ar", "C", "Cl", "Cr"]
    assert not (tmp_path / "out.r2l").exists()
    call(make_triples, *words, "--pairs", "pl")
    assert texts.read_lines(tmp_path / "out.de") == ["A", "Al", "C", "Cl"]
    with pytest.raises(ValueError, match="--drop-identical is for --triples"):
        call(make_triples, *words, "--pairs", "pl", "--drop-identical")
    call(make_triples, *words[:-2], *right, "pr")  # wants no L2R teacher
    assert texts.read_lines(tmp_path / "out.de") == ["A", "Ar", "B", "Br", "C", "Cr"]
    with pytest.raises(ValueError, match="--pseudo-r2l must be given, but for --pairs"):
        call(make_triples, *words, "--pairs", "pr")
    call(make_triples, *words, *right, "pr")  # the sentences that triples have
    assert texts.read_lines(tmp_path / "out.de") == ["A", "Ar", "C", "Cr"]
    put(tmp_path / "r2l", "0\t-1.0\tAr")
    call(make_triples, *words, *right, "pl")
    assert texts.read_lines(tmp_path / "out.de") == ["A", "Al"]
