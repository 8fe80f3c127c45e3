"""sbnmt triples: gold text and pseudo targets to triples and pairs."""

import json
import random

import pytest
from steps import call, imported, put

from sbnmt_plugin.symbols import RESERVED
from sbnmt_plugin.tools import jobs, unfinished
from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import triples
from sbnmt_plugin.tools.translations import each_translation


def texts_of(kind):
    """Return the targets of a sentence: g of the bitext, l and r by the teachers."""
    found = triples.examples_of(kind, "s", "g", "l", "r")
    assert all(source == "s" for source, *_ in found)
    return ["".join(targets) for _, *targets in found]


def test_two_triples_are_the_papers():
    assert {kind: " ".join(texts_of(kind)) for kind in triples.KINDS} == {
        "one": "gr",
        "two": "lg gr",
        "three": "lg gr gg",
        "six": "gl gr lg lr rg rl",
        "pl": "g l",
        "pr": "g r",
        "pl-pr": "g l r",
        "kd": "l",
    }


SENTENCES = 40
KINDS = [
    *(("--triples", kind) for kind in triples.TRIPLES),
    *(("--pairs", kind) for kind in triples.PAIRS),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A bitext and what two teachers made of it, with gaps, and some texts alike."""
    folder, draw = tmp_path_factory.mktemp("corpus"), random.Random(1)

    def line():
        return " ".join(draw.choices(["a", "b", "ß", "好"], k=draw.randint(1, 2)))

    columns = {name: [line() for _ in range(SENTENCES)] for name in ("en", "de")}
    for name, lines in columns.items():
        texts.write_lines(folder / f"t.{name}", lines)
    for name in ("l2r", "r2l"):
        rows = [f"{i}\t-0.5\t{line()}" for i in range(SENTENCES) if draw.random() < 0.9]
        texts.write_lines(folder / f"{name}.tsv", rows)
    return folder


@pytest.mark.parametrize("flag, kind", KINDS)
def test_examples_are_those_of_a_program_that_holds_all(
    corpus, tmp_path, capsys, flag, kind
):
    source, gold = texts.read_parallel(corpus / "t.en", corpus / "t.de")
    teachers = {"one": ["r2l"], "kd": ["l2r"]}.get(kind, ["l2r", "r2l"])
    pseudo = [corpus / f"{name}.tsv" for name in teachers]
    read = [dict(each_translation(path, SENTENCES)) for path in pseudo]
    usable = [i for i in range(SENTENCES) if all(i in found for found in read)]
    expected = []
    for i in usable:
        left, right = read[0][i], read[-1][i]
        expected += triples.examples_of(kind, source[i], gold[i], left, right)
    words = ["--source", corpus / "t.en", "--target", corpus / "t.de", flag, kind]
    for name, path in zip(teachers, pseudo):
        words += [f"--pseudo-{name}", path]
    call(triples, *words, "--output", tmp_path / "out")
    ends = ["en", "de", "r2l"][: 2 if flag == "--pairs" else 3]
    found = zip(*(texts.read_lines(tmp_path / f"out.{end}") for end in ends))
    assert list(found) == expected
    gone = SENTENCES - len(usable)
    said = capsys.readouterr().out
    assert said.startswith(f"{SENTENCES} sentences, {gone} not translated\n")


@pytest.fixture
def bitext(tmp_path):
    """Return the options of three sentences, of all but the output."""
    put(tmp_path / "g.en", "a", "b", "c")
    put(tmp_path / "g.de", "A", "B", "C")
    put(tmp_path / "l", "0\t-1.0\tA", "1\t-1.0\tBl", "2\t-1.0\tCl")
    put(tmp_path / "r", "0\t-1.0\tAr", "1\t-1.0\tBr", "2\t-1.0\tCr")
    return {
        "--source": tmp_path / "g.en",
        "--target": tmp_path / "g.de",
        "--pseudo-l2r": tmp_path / "l",
        "--pseudo-r2l": tmp_path / "r",
    }


def make(bitext, *words):
    """Run the step; return the lines of its files, those with one number together."""
    output = bitext["--source"].with_name("out")
    given = [part for option in bitext.items() for part in option]
    call(triples, *given, "--output", output, *words)
    suffixes = [x for x in ("en", "de", "r2l") if output.with_suffix(f".{x}").exists()]
    return list(zip(*(texts.read_lines(f"{output}.{x}") for x in suffixes)))


def test_the_step_says_what_it_has_written(bitext, capsys):
    assert make(bitext)[:2] == [("a", "A", "A"), ("a", "A", "Ar")]
    report = capsys.readouterr().out
    assert "6 triples written; 1 of 6 (16.7 %) with identical texts\n" in report
    put(bitext["--pseudo-l2r"], "0\t-1.0\tA", "2\t-1.0\tCl")
    assert {source for source, *_ in make(bitext)} == {"a", "c"}
    assert "3 sentences, 1 not translated" in capsys.readouterr().out


def note(bitext, flag, **changes):
    """The note that sbnmt pseudo leaves beside a translation."""
    lines = texts.read_lines(bitext["--source"])
    words = ["data", "--sb-direction", flag[-3:], "--beam", "4"]
    job = {**jobs.describe_job(lines, words), **changes}
    folder = bitext[flag].with_name(f"{bitext[flag].name}.shards")
    put(folder / "job.json", json.dumps(job))


def test_a_translation_of_another_text_is_refused(bitext):
    for flag in "--pseudo-l2r", "--pseudo-r2l":
        note(bitext, flag)
        expected = make(bitext)
        note(bitext, flag, **{"input sha256": jobs.origin.sha256_of(["a", "b"])})
        with pytest.raises(
            ValueError, match=f"^{flag} .* must be a translation of --so"
        ):
            make(bitext)
        note(bitext, flag)
        assert make(bitext) == expected


@pytest.mark.parametrize("words", [["--sb-direction", "r2l"], ["--sb-direction=r2l"]])
def test_a_translation_in_the_other_direction_is_refused(bitext, words):
    note(bitext, "--pseudo-l2r", options=words)
    message = "^--pseudo-l2r .* by a teacher that writes l2r, but is by one .* r2l: giv"
    with pytest.raises(ValueError, match=message):
        make(bitext)
    note(bitext, "--pseudo-l2r", options=["--sb-direction", "both"])
    make(bitext)


def test_pairs_do_not_stand_beside_the_text_of_triples(bitext):
    triples_of_all = make(bitext)
    with pytest.raises(ValueError, match=r"out\.r2l must not stand beside pairs, or"):
        make(bitext, "--pairs", "pl-pr")
    assert make(bitext) == triples_of_all
    bitext["--source"].with_name("out.r2l").unlink()
    assert len(make(bitext, "--pairs", "pl-pr")[0]) == 2


@pytest.mark.parametrize("empty", ["", " ", "\u3000"])
@pytest.mark.parametrize("side", ["--pseudo-l2r", "--pseudo-r2l"])
@pytest.mark.parametrize("words", [[], ["--triples", "six"], ["--pairs", "pl-pr"]])
def test_an_empty_translation_is_none(bitext, capsys, caplog, side, words, empty):
    put(bitext[side], "0\t-1.0\tA", f"1\t-1.0\t{empty}", "2\t-1.0\tCl")
    assert {source for source, *_ in make(bitext, *words)} == {"a", "c"}
    assert "3 sentences, 1 not translated" in capsys.readouterr().out
    assert "has 1 empty lines, not translated" in caplog.text


def test_the_last_file_appears_last(bitext, monkeypatch):
    """A recipe takes it for a sign that all are there."""
    order, rename = [], unfinished.rename

    def noted(source, target):
        order.append(str(target).rpartition(".")[2])
        rename(source, target)

    monkeypatch.setattr(unfinished, "rename", noted)
    make(bitext)
    assert order == ["en", "de", "r2l"]


def test_pairs_have_no_file_of_r2l_texts(bitext):
    assert make(bitext, "--pairs", "pl")[:2] == [("a", "A"), ("a", "A")]
    put(bitext["--pseudo-r2l"], "0\t-1.0\tAr")  # the sentences that triples have
    assert make(bitext, "--pairs", "pl") == [("a", "A"), ("a", "A")]
    bitext.pop("--pseudo-l2r")  # which pr can do without
    assert make(bitext, "--pairs", "pr") == [("a", "A"), ("a", "Ar")]


@pytest.mark.parametrize("symbol", RESERVED)
def test_a_reserved_symbol_gives_no_triple(bitext, symbol):
    put(bitext["--pseudo-l2r"], "0\t-1.0\tA", f"1\t-1.0\tB {symbol}")
    with pytest.raises(ValueError, match=rf"l, line 2, must not contain {symbol}"):
        make(bitext)
    put(bitext["--pseudo-l2r"], "0\t-1.0\tA", "1\t-1.0\t<unk>")
    assert ("b", "<unk>", "B") in make(bitext)
    put(bitext["--target"], "A", "B", f"{symbol} C")
    with pytest.raises(ValueError, match=rf"g.de, line 3, must not contain {symbol}"):
        make(bitext)


def test_triples_are_made_without_torch(bitext, tmp_path):
    words = [str(part) for option in bitext.items() for part in option]
    words += ["--output", str(tmp_path / "again")]
    found = imported("-m", "sbnmt_plugin", "triples", *words)
    assert "sbnmt_plugin.symbols" in found
    assert not {"torch", "fairseq"} & found
    assert (tmp_path / "again.r2l").exists()


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (["7\t-1.0\tA"], "line 1, must have an id after .* below 3, but has 7"),
        (["0\t-1.0\tA", "0\t-1.0\tA"], "line 2, must have an id after .*, but has 0"),
        (
            [f"{i}\t-1.0\tA" for i in range(4)],
            "line 4, must have an id .* below 3, but",
        ),
        (["A B C"], "line 1, must be id<TAB>score<TAB>text"),
    ],
)
def test_foreign_pseudo_targets_are_refused(bitext, tmp_path, left, message):
    put(bitext["--pseudo-l2r"], *left)
    with pytest.raises(ValueError, match=message):
        make(bitext)
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize(
    ("without", "words", "message"),
    [
        ("l2r", ["--triples", "two"], "--pseudo-l2r must be given, but for --triples"),
        ("l2r", ["--pairs", "pl"], "--pseudo-l2r must be given, but for --triples"),
        ("r2l", ["--pairs", "pr"], "--pseudo-r2l must be given, but for --pairs"),
        ("", ["--triples", "one"], "--pseudo-l2r is not for --triples one, which has"),
        ("", ["--pairs", "kd"], "--pseudo-r2l is not for --pairs kd, which has"),
        ("", ["--target", "g.en"], "must end in two different suffixes"),
    ],
)
def test_options_that_do_not_go_together_are_refused(bitext, without, words, message):
    bitext.pop(f"--pseudo-{without}", None)
    with pytest.raises(ValueError, match=message):
        make(bitext, *words)
