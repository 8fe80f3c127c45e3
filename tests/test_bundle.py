"""Model folders of trained checkpoints, and what they translate."""

import argparse
import contextlib
import json
import math
import re
import shutil
from itertools import product

import pytest
import torch
import yaml
from commands import ROOT, load
from exporting import model_folder
from steps import call, put

import sbnmt_plugin
from sbnmt_plugin.symbols import BYTES
from sbnmt_plugin.tools.commands import bpe, bundle
from sbnmt_plugin.tools.subwords import Pieces

WITNESSES = ROOT / "tests" / "data" / "0.2.0"
EXPECTED = json.loads((WITNESSES / "expected.json").read_text())["decoded"]
LINES = (WITNESSES / "input.en").read_text().splitlines()
LENGTHS = ["--max-len-a", 0, "--max-len-b", 200]  # fairseq's, of the witnesses
LOG_2 = math.log(2)  # fairseq prints scores to the base 2
ALL = [name for name in EXPECTED if name not in ("sb, l2r answers", "sb, best pairs")]
TABLE = ["--enat-table", WITNESSES / "table"]


def witness(name, output):
    """The model folder of a witness."""
    case, made = EXPECTED[name], [*LENGTHS]
    flags = {"--sb-rescore", "--source-lang", "--target-lang"}
    flags |= {"--enat-table", "--nat-teacher"}
    for flag, value in zip(case["options"], case["options"][1:]):
        if flag in flags:
            made += [flag, value.replace("@", f"{WITNESSES}/")]
    path = WITNESSES / f"{case['checkpoint']}.pt"
    return model_folder(path, WITNESSES / "data", output, *made)


@pytest.mark.parametrize("name", ALL)
def test_a_folder_of_any_family_translates_as_its_checkpoint(name, tmp_path):
    moved = shutil.move(witness(name, tmp_path / "model"), tmp_path / "moved")
    model = sbnmt_plugin.load(moved, device="cpu", nbest=None)
    known = EXPECTED[name]["hypotheses"]
    for place, found in enumerate(model.hypotheses(LINES)):
        if not LINES[place]:
            assert found == []
            continue
        texts = [text for _, text in known[str(place)]]
        assert [h.tokens for h in found][: len(texts)] == texts
    best = [known[str(i)][0][1] if line else "" for i, line in enumerate(LINES)]
    assert model.translate(LINES) == best


def test_directions_that_do_not_share_the_beam_have_all_of_it(tmp_path):
    words = [WITNESSES / "data", tmp_path / "model", "--beam", 5, *LENGTHS]
    folder = model_folder(WITNESSES / "abd.pt", *words)
    model = sbnmt_plugin.load(folder, device="cpu", nbest=None)
    assert len(model.hypotheses(LINES[:1])[0]) == 5
    wider = sbnmt_plugin.load(folder, device="cpu", beam=7, nbest=7)
    assert wider.engine.most == 7
    with pytest.raises(ValueError, match=r"^--beam must be even, as two directions"):
        model_folder(WITNESSES / "sb.pt", *words[:1], tmp_path / "odd", *words[2:])
    assert not (tmp_path / "odd").exists()


def test_the_check_of_translations_can_fail(tmp_path):
    """A folder that keeps no options of the search would be noticed."""
    folder = witness("sb, rescored", tmp_path / "model")
    known = EXPECTED["sb, rescored"]["hypotheses"]
    for rescore, same in (None, True), (0, False):
        model = sbnmt_plugin.load(folder, device="cpu", rescore=rescore, nbest=2)
        found = model.hypotheses(LINES)
        scores = [float(score) * LOG_2 for score, _ in known["0"]]
        close = [h.score for h in found[0]] == pytest.approx(scores, abs=1e-3)
        assert close == same


def test_a_folder_says_what_it_is_made_of(data, trained, tmp_path):
    scores = put(tmp_path / "scores.json", '{"test": {"bleu": 9.5, "signature": "x"}}')
    folder = model_folder(trained, data, tmp_path / "model", "--scores", scores)
    state = load(folder / "model.pt")
    assert state["last_optimizer_state"] is None
    told = yaml.safe_load((folder / "model.yaml").read_text())
    assert told["directions"] == ["l2r", "r2l"]
    assert told["scores"] == {"test": {"bleu": 9.5, "signature": "x"}}
    assert sorted(told["files"]) == ["dict.de.txt", "dict.en.txt", "model.pt"]
    origin = told["provenance"]
    assert origin["seed"] == 1 and origin["checkpoint"] == "checkpoint_last.pt"
    assert origin["version"] == sbnmt_plugin.__version__ and origin["updates"] > 30


def test_each_language_has_its_own_rules_and_codes(tmp_path):
    codes = [put(tmp_path / name, "#version: 0.2", f"{name} b") for name in "xy"]
    folder = tmp_path / "model"
    words = ["--tokeniser", "none", "characters", "--codes", *codes, "--lowercase"]
    words += ["--path", WITNESSES / "sb.pt", "--output", folder]
    call(bundle, WITNESSES / "data", *words)
    told = yaml.safe_load((folder / "model.yaml").read_text())
    for side, rules, path in zip(("source", "target"), ("none", "characters"), codes):
        assert told[side]["tokeniser"] == rules and told[side]["lowercase"]
        assert (folder / told[side]["codes"]).read_text() == path.read_text()


NO_CODES = WITNESSES / "data" / "dict.en.txt"
R2L = WITNESSES / "teacher-r2l.pt"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--path", WITNESSES / "none.pt"], r"none\.pt .*does not exist"),
        (["--path", WITNESSES / "enat-phrase.pt"], "add --enat-table"),
        (["--path", WITNESSES / "sb.pt", *TABLE], "--enat-table"),
        (["--path", f"{NO_CODES}:{NO_CODES}"], "--path must be one checkpoint, but is"),
        (
            ["--path", WITNESSES / "enat-map.pt", "--nat-teacher", R2L],
            f"--nat-teacher {R2L} must be a model of --sb-direction l2r",
        ),
        (["--path", WITNESSES / "sb.pt", "--beam", 1], "--beam must be ≥ 2"),
        (["--path", WITNESSES / "sb.pt", "-s", "fr"], "dict.fr.txt"),
        (["--path", WITNESSES / "sb.pt", "--codes", NO_CODES], f"^{NO_CODES}, line"),
        (["--path", WITNESSES / "sb.pt", "--codes", 1, 2, 3], "--codes must be one or"),
        (["--path", WITNESSES / "sb.pt", "--lenpen", "nan"], "lenpen"),
    ],
)
def test_what_would_not_translate_is_refused_and_leaves_nothing(
    words, message, tmp_path
):
    with pytest.raises((ValueError, OSError), match=message):
        call(bundle, WITNESSES / "data", "--output", tmp_path / "model", *words)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_another_task_is_refused(tmp_path):
    state, path = load(WITNESSES / "sb.pt"), tmp_path / "plain.pt"
    del state["cfg"]["model"].sb_direction
    state["cfg"]["model"].task = "translation"
    torch.save(state, path)
    with pytest.raises(
        ValueError, match=r"^--path .*plain\.pt must .* by translation:"
    ):
        model_folder(path, WITNESSES / "data", tmp_path / "model")


@pytest.mark.parametrize("word", ["be@@", "\N{LOWER ONE EIGHTH BLOCK}be"])
def test_forgotten_codes_are_asked_for(word, tmp_path):
    """A single word of such a form, as a text may have it, asks for nothing."""
    args = argparse.Namespace(data=tmp_path, languages=["en"], codes=None)
    args.tokeniser, args.lowercase, folder = ["moses"], False, tmp_path / "model"
    folder.mkdir()
    dictionary = [f"{word} 9", *(f"w{i} 1" for i in range(200))]
    put(tmp_path / "dict.en.txt", *dictionary)
    assert bundle.add_side(args, 0, folder).codes == ""
    put(tmp_path / "dict.en.txt", *dictionary[:21])
    with pytest.raises(ValueError, match=r"^--codes must be given: 1 of 21 words of"):
        bundle.add_side(args, 0, folder)


def test_codes_of_another_text_are_refused(tmp_path):
    """Two files of codes show nothing where the languages share a dictionary."""
    own, other = (
        put(tmp_path / name, "#version: 0.2", *(f"{x} {i}</w>" for i in range(10)))
        for name, x in (("own", "w"), ("other", "v"))
    )
    numbers = [f"{i} 1" for i in range(9)]
    shared = [f"{x}{i} 1" for x in "wv" for i in range(10)] * 3
    args = argparse.Namespace(data=tmp_path, languages=["en", "de"])
    args.tokeniser, args.lowercase, folder = ["none"], False, tmp_path / "model"
    folder.mkdir()
    for codes, english, german, refused in (
        ([own], shared[:10] * 6, numbers, False),
        ([other], shared[:10] * 6, numbers, True),
        ([other], shared[:10] * 4, numbers, False),  # few words
        ([own], shared, shared, True),
        ([own, other], shared, shared, False),
        ([other, own], shared[:10] * 6, numbers, True),
    ):
        for language, words in ("en", english), ("de", german):
            entries = *words, "s@@ 3", "s 2", "madeupword0000 0"
            put(tmp_path / f"dict.{language}.txt", *entries)
        args.codes = codes
        with pytest.raises(ValueError) if refused else contextlib.nullcontext() as told:
            bundle.add_side(args, 0, folder)
        if refused:
            share = 50 if english == german else 0
            start = f"--codes {codes[0]} must be those .* keep only {share} % of .*"
            assert re.match(
                f"{start} {tmp_path / 'dict.en.txt'} whole", str(told.value)
            )


def test_pieces_of_another_text_are_refused(tmp_path):
    learn = ["learn", "--kind", "sentencepiece", "--merges", 330]
    for name, letters in ("own", "abc"), ("other", "xyz"):
        lines = ["".join(x) + " " + "".join(x) for x in product(letters, repeat=4)]
        call(bpe, *learn, "--codes", tmp_path / name, put(tmp_path / "text", *lines))
    listed = Pieces(tmp_path / "own").pieces
    words = [piece for piece in listed if piece not in BYTES and len(piece) > 1] * 9
    assert len(words) >= bundle.FEW
    put(tmp_path / "dict.en.txt", *(f"{word} 1" for word in words))
    args = argparse.Namespace(data=tmp_path, languages=["en"], tokeniser=["none"])
    args.lowercase, args.codes, folder = False, [tmp_path / "own"], tmp_path / "model"
    folder.mkdir()
    assert bundle.add_side(args, 0, folder).codes == "codes"
    args.codes = [tmp_path / "other"]
    with pytest.raises(ValueError, match=f"^--codes {tmp_path}/other must be those"):
        bundle.add_side(args, 0, folder)


def test_raw_text_is_not_tokenised_before_its_pieces(tmp_path):
    codes = tmp_path / "codes"
    text = put(tmp_path / "text", *["the cat sat"] * 9)
    learn = ["learn", "--kind", "sentencepiece", "--merges", 300]
    call(bpe, *learn, "--codes", codes, text)
    words = ["--path", WITNESSES / "sb.pt", "--codes", codes]
    with pytest.raises(ValueError, match=r"^--tokeniser must be none for .* is moses"):
        call(bundle, WITNESSES / "data", "--output", tmp_path / "model", *words)
    assert model_folder(WITNESSES / "sb.pt", WITNESSES / "data", tmp_path / "m", *words)


def test_a_language_without_rules_needs_another_tokeniser(tmp_path):
    put(tmp_path / "dict.src.txt", "w1 1")
    args = argparse.Namespace(data=tmp_path, languages=["src"], codes=None)
    args.tokeniser, args.lowercase, folder = ["moses"], False, tmp_path / "model"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"^--tokeniser must be none .* for src"):
        bundle.add_side(args, 0, folder)


def test_a_folder_that_exists_is_kept(tmp_path):
    with pytest.raises(FileExistsError, match="--output"):
        witness("sb", tmp_path)


def test_a_folder_without_languages_is_refused(tmp_path):
    with pytest.raises(ValueError, match="names two languages"):
        model_folder(WITNESSES / "sb.pt", tmp_path, tmp_path / "model")


def test_from_pretrained_takes_the_folder(data, trained, tmp_path):
    from sbnmt_plugin.model import SBTransformerModel

    folder = model_folder(trained, data, tmp_path / "model")
    hub = SBTransformerModel.from_pretrained(
        str(folder), source_lang="en", target_lang="de"
    )
    model = sbnmt_plugin.load(folder)
    search = {"lenpen": 0.6, "max_len_a": 1.2, "max_len_b": 10}
    assert hub.translate(["w1 w2"], **search) == model.translate(["w1 w2"])
