"""The search of exported models: as our own, in any batch, and without torch."""

import contextlib
import dataclasses
import json
import math
import os
import shutil
import subprocess
import sys
from unittest import mock

import pytest
from commands import ROOT
from exporting import model_folder, run_export, some_lines, without_interaction
from processor import VNNI

from sbnmt_plugin.network.decoder import SBTransformerDecoder
from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.symbols import NAMES, RESERVED, TAGS
from sbnmt_plugin.tools.models import converted, ctranslate2_engine
from sbnmt_plugin.tools.models.converted import PAD, Converted
from sbnmt_plugin.tools.models.ctranslate2_engine import CTranslate2Engine, batches
from sbnmt_plugin.tools.models.description import (
    NAME,
    read_description,
    write_description,
)
from sbnmt_plugin.tools.models.folder import load
from sbnmt_plugin.training.checksums import sha256_of

pytest.importorskip("ctranslate2")

SAME = 0.85  # share of lines with the same text at least: the searches end otherwise,
# and models that have learned little waver
NEAR = 1e-4  # scores of the same text differ by less
WIDE = 0.2  # by less, where one is normalised by all words and the other by its search
LINES = some_lines()


@pytest.fixture(scope="module")
def folders(trained, data, tmp_path_factory):
    """A model folder of both directions, and its export."""
    folder = tmp_path_factory.mktemp("folders")
    free = without_interaction(trained, folder / "free.pt")
    torch_folder = model_folder(free, data, folder / "torch")
    run_export(torch_folder, folder / "exported")
    return torch_folder, folder / "exported"


@pytest.fixture(scope="module")
def teachers(teacher, data, tmp_path_factory):
    """A folder of an R2L teacher, and its export."""
    folder = tmp_path_factory.mktemp("teachers")
    torch_folder = model_folder(teacher, data, folder / "torch")
    run_export(torch_folder, folder / "exported")
    return torch_folder, folder / "exported"


@pytest.fixture
def normalised(monkeypatch):
    """Our search, which normalises what may come next as CTranslate2's does.

    It leaves out of the sum tags, padding, <s> and an end before the first word.  In a
    vocabulary of 18 words that are learned with smoothing, these have more than a
    hundredth of each probability.
    """
    step = SBTransformerDecoder.step

    def other(self, tokens, *given):
        following, weights = step(self, tokens, *given)
        never = [*TAGS, PAD, "<s>"] + ["</s>"] * (tokens.size(1) == 1)
        never = [self.dictionary.index(word) for word in never]
        following.logits[:, never] = -math.inf
        return NextTokens.of_logits(following.logits), weights

    monkeypatch.setattr(SBTransformerDecoder, "step", other)


def assert_alike(pair, **search):
    """Check texts and scores of the best hypotheses of both searches."""
    near = WIDE if search.get("rescore") or "max_len_b" in search else NEAR
    ours, theirs = (load_with(folder, **search).hypotheses(LINES) for folder in pair)
    pairs = [(x[0], y[0]) for x, y in zip(theirs, ours) if x[0].tokens == y[0].tokens]
    texts = {x.tokens for x, _ in pairs}
    assert len(pairs) >= SAME * len(LINES) and len(texts) > len(LINES) / 3
    assert max(abs(x.score - y.score) for x, y in pairs) < near


def load_with(folder, **search):
    """Load a folder with other options of the search, also those that no flag sets."""
    options = {k: search.pop(k) for k in ("beam", "lenpen", "rescore") if k in search}
    made = load(folder, "cpu", **options)
    if search:
        description = dataclasses.replace(
            made.description, search={**made.description.search, **search}
        )
        opened = sys.modules[type(made.engine).__module__].open_engine
        made.engine = opened(folder, description, "cpu", "float32", 1)
    return made


@pytest.mark.parametrize(
    "search",
    [
        {},
        {"length_penalty": "power"},
        {"rescore": 1.0},
        {"rescore": 2.5, "length_penalty": "power", "lenpen": 1.3, "beam": 6},
        {"lenpen": 0.0},
    ],
    ids=str,
)
def test_it_translates_as_our_own_search(folders, normalised, search):
    assert_alike(folders, **search)


def test_it_translates_nearly_alike_in_8_bits(folders):
    """Scores of one text differ, but by little."""
    whole, narrow = (
        [own[0] for own in load(folders[1], dtype=dtype).hypotheses(LINES)]
        for dtype in ("float32", "int8")
    )
    same = [(x, y) for x, y in zip(whole, narrow) if x.tokens == y.tokens]
    least, most = (SAME, WIDE) if VNNI else (0.6, 1.0)
    assert len(same) >= least * len(LINES)
    assert 0 < max(abs(x.score - y.score) for x, y in same) < most


def test_a_line_is_as_long_as_positions_reach(folders):
    model = load(folders[1], "cpu")
    most = model.description.search["max_positions"]
    fits, over = model.hypotheses(["W1 " * (most - 1), "W1 " * most])
    assert "allowed" not in str(fits) and f"at most {most} are allowed" in over


def test_so_does_a_teacher(teachers, normalised):
    assert_alike(teachers)


def test_the_check_of_translations_by_it_can_fail(folders, normalised, monkeypatch):
    monkeypatch.setattr(ctranslate2_engine, "FORMULAS", {"gnmt": lambda n, a: 1.0})
    with pytest.raises(AssertionError):
        assert_alike(folders)


def test_the_check_of_directions_can_fail(folders, normalised, monkeypatch):
    """All texts as they were written, or all reversed: one of them is often wrong."""
    wrong = 0
    for ordered in (lambda text, _: text, lambda text, _: text[::-1]):
        monkeypatch.setattr(converted, "ordered", ordered)
        try:
            assert_alike(folders)
        except AssertionError:
            wrong += 1
    assert wrong


def assert_cut(folder):
    """Check that what a limit cuts off is scored as if it had ended there."""
    search = {"max_len_a": 0, "max_len_b": 2, "rescore": 0.0, "beam": 4}
    search = {**read_description(folder).search, **search}
    model = Converted(folder, ("l2r", "r2l"))
    engine = CTranslate2Engine(model, search, 4)
    long = [line for line in LINES if len(line.split()) > 4]
    count = 0
    for line, found in zip(long, engine.hypotheses(long)):
        for tokens, score, direction in found:
            words = tokens.split()
            assert len(words) <= 2
            (total,) = model.totals([(line.split(), (tuple(words), direction))])
            expected = total / ((6 + len(words)) / 6) ** 0.6
            assert score == pytest.approx(expected, abs=WIDE)
            count += len(words) == 2
    assert count > len(long)


def test_a_hypothesis_that_is_cut_ends_at_the_limit(folders, monkeypatch):
    assert_cut(folders[1])
    search = Converted.search
    far = lambda self, *given: search(self, *given[:3], 20)  # noqa: E731 (the twin)
    monkeypatch.setattr(Converted, "search", far)
    ranked = CTranslate2Engine.ranked
    never = lambda self, *given: ranked(self, *given[:2], [99] * 99)  # noqa: E731
    monkeypatch.setattr(CTranslate2Engine, "ranked", never)
    with pytest.raises(AssertionError):
        assert_cut(folders[1])


class Scripted:
    """A converted model whose hypotheses have given lengths.

    Args:
        lengths: subwords of the hypotheses of each source, by its first word.
    """

    def __init__(self, lengths):
        self.starts = dict(zip(NAMES, TAGS))
        self.lengths, self.calls = lengths, []

    def search(self, sources, beam, alpha, longest):
        self.calls.append(([source[0] for source in sources], longest))
        cut = [[min(x, longest + 1) for x in self.lengths[s[0]]] for s in sources]
        return [[((("w",) * x, "l2r"), -1.0 / x) for x in own] for own in cut]

    def totals(self, pairs):
        return [-9.0] * len(pairs)


def found_lengths(model):
    """Search for a translation of 5 words of every source, up to 200 subwords."""
    search = {"max_len_a": 0, "max_len_b": 200, "max_positions": 1024, "beam": 4}
    search |= {"length_penalty": "power", "lenpen": 0.0, "rescore": 0.0}
    results = CTranslate2Engine(model, search, 4).search([[x] * 5 for x in "abc"])
    return [sorted(len(text) for (text, _), _ in own) for own in results]


def test_what_cannot_be_written_is_no_translation(monkeypatch):
    """CTranslate2 gives it float32's lowest score; of a text found twice the first."""
    model = Scripted({})
    word, other = (("w",), "l2r"), (("x",), "l2r")
    rows = [(word, -1.0), (word, -3.4e38), (other, -3.4e38)]
    monkeypatch.setattr(model, "search", lambda sources, *_: [rows for _ in sources])
    monkeypatch.setattr(model, "explained", contextlib.nullcontext, raising=False)
    search = {"max_len_a": 0, "max_len_b": 5, "max_positions": 9, "beam": 4}
    search |= {"length_penalty": "power", "lenpen": 0.0, "rescore": 0.0}
    engine = CTranslate2Engine(model, search, 4)
    assert engine.search([["a"]]) == [[(word, -1.0)]]
    rows[:1] = []
    assert engine.hypotheses(["a"]) == ["the model gives no finite score"]
    monkeypatch.setattr(ctranslate2_engine, "LOWEST", -math.inf)
    assert len(engine.search([["a"]])[0]) == 2  # the twin


def test_a_search_ends_at_the_horizon(monkeypatch):
    """a: 7 tokens fill its pool, so no more than 13 are sought; b: 15, so 23; c: never.

    The likely length is 20, the horizon's horizon of 6 tokens of a source.
    """
    lengths = {"a": [3, 4, 5, 6, 300], "b": [2, 2, 9, 14, 22, 23], "c": [1, 300, 300]}
    model = Scripted(lengths)
    assert found_lengths(model) == [[3, 4, 5, 6], [2, 9, 14, 22], [1, 200]]
    assert model.calls == [(["a", "b", "c"], 20), (["b", "c"], 200)]
    model = Scripted({**lengths, "a": [3, 4, 5, 6, 12, 13]})
    assert found_lengths(model)[0] == [4, 5, 6, 12]
    monkeypatch.setattr(ctranslate2_engine, "horizon", lambda n: 5 * n // 4 + 6)
    assert found_lengths(model)[0] == [5, 6, 12, 13]  # the twin


@pytest.mark.parametrize("alpha", [-20.0, 20.0])
def test_scores_of_long_texts_stay_numbers(folders, alpha):
    model = Converted(folders[1], ("l2r", "r2l"))
    (found,) = model.search([["w1"]], 2, alpha, 200, 190)
    assert len(found) > 1 and all(-1e4 < score < 0 for _, score in found)


def test_the_limit_is_ours(folders, normalised):
    assert_alike(folders, max_len_a=0.5, max_len_b=1)
    ((empty, *_),) = load_with(folders[1], max_len_a=0, max_len_b=0).hypotheses(["w1"])
    assert not empty.tokens


def test_rescoring_asks_for_unknown_scores_alone(folders, monkeypatch):
    asked, found = [], []
    totals, search = Converted.totals, Converted.search

    def watch(self, pairs):
        asked.extend(stream for _, stream in pairs)
        return totals(self, pairs)

    def see(self, *given):
        result = search(self, *given)
        found.extend(stream for own in result for stream, _ in own)
        return result

    monkeypatch.setattr(Converted, "totals", watch)
    monkeypatch.setattr(Converted, "search", see)
    load(folders[1], rescore=1.0).translate(LINES[:1])
    assert asked and not {*asked} & {*found}
    assert len(asked) == len({*asked})
    asked.clear()
    load(folders[1]).translate(LINES[:1])
    assert not asked


def test_a_batch_does_not_matter(folders, monkeypatch):
    lines = [*LINES[:9], "", "w1 " * 30, "w77"]
    model = load(folders[1], nbest=None)
    whole = model.hypotheses(lines)
    assert [x[0].tokens if x else "" for x in whole] == model.translate(lines)
    assert {len(x) for x in whole} == {0, 4}
    monkeypatch.setattr(ctranslate2_engine, "TOKENS", 11)
    for some in (model.hypotheses(lines), [model.hypotheses([x])[0] for x in lines]):
        for one, other in zip(whole, some):
            assert [x.tokens for x in one] == [x.tokens for x in other]
            for left, right in zip(one, other):
                assert left.score == pytest.approx(right.score, abs=1e-4)


def test_batches_are_of_similar_lengths_and_bounded(monkeypatch):
    monkeypatch.setattr(ctranslate2_engine, "TOKENS", 20)
    sources = [line.split() for line in some_lines(50, 25)]
    found = list(batches(sources))
    assert sorted(x for batch in found for x in batch) == [*range(50)]
    lengths = [[len(sources[x]) + 1 for x in batch] for batch in found]
    assert all(len(x) == 1 or max(x) * len(x) <= 20 for x in lengths)
    flat = [length for batch in lengths for length in batch]
    assert flat == sorted(flat)
    assert list(batches([])) == []


def test_tags_and_padding_are_never_written(folders):
    for own in load(folders[1], nbest=4).hypotheses(LINES):
        for hypothesis in own:
            assert not {*RESERVED, PAD} & {*hypothesis.tokens.split()}


# what is loaded is checked before CTranslate2 sees it


def changed(folder, output, name, change):
    """Copy a folder, change one of its files, and write down the new checksum."""
    shutil.copytree(folder, output)
    (output / name).write_bytes(change((output / name).read_bytes()))
    before, after = (sha256_of(x / name) for x in (folder, output))
    text = (output / NAME).read_text()
    assert before in text
    (output / NAME).write_text(text.replace(before, after))
    return output


def shorter(text):
    return json.dumps(json.loads(text)[:-3]).encode()


def without_tag(text):
    return text.replace(b"<r2l>", b"<xxx>")


VOCABULARY = "target_vocabulary.json"
WORDS = "vocabulary.json must have the words of the dictionaries"
WRONG = {
    "a short vocabulary": (VOCABULARY, shorter, f"target_{WORDS}"),
    "no tag": (VOCABULARY, without_tag, f"target_{WORDS}"),
    "no JSON": (VOCABULARY, lambda text: text[:-1], f"{VOCABULARY} must be as it was"),
    "another dictionary": (
        *("dict.en.txt", lambda text: text + b"w99 1\n"),
        f"source_{WORDS}",
    ),
}


@pytest.mark.parametrize(("name", "change", "message"), WRONG.values(), ids=WRONG)
def test_a_changed_folder_is_refused_before_it_is_loaded(
    folders, tmp_path, name, change, message, monkeypatch
):
    import ctranslate2

    monkeypatch.setattr(ctranslate2, "Translator", None)
    folder = changed(folders[1], tmp_path / "changed", name, change)
    with pytest.raises(ValueError, match=message):
        load(folder)


@pytest.mark.parametrize(
    "name", ["shared_vocabulary.json", "source_vocabulary.txt", "vocabulary.json"]
)
def test_a_vocabulary_that_nobody_has_checked_is_refused(folders, tmp_path, name):
    """CTranslate2 would load it, although the description does not name it."""
    folder = tmp_path / "more"
    shutil.copytree(folders[1], folder)
    (folder / name).symlink_to(folder / VOCABULARY)
    with pytest.raises(ValueError, match=f"{name} must .* be named by model.yaml"):
        load(folder)


def test_what_ctranslate2_cannot_do_is_a_line_with_the_folder(
    folders, tmp_path, monkeypatch
):
    folder = changed(folders[1], tmp_path / "cut", "model.bin", lambda data: data[:99])
    with pytest.raises(ValueError, match=f"CTranslate2 fails with {folder} .*: take a"):
        load(folder)

    model = load(folders[1])
    for reason, remedy in (
        ("out of memory", "take a smaller"),
        ("Library libcublas.so.12 is not found or cannot be loaded", "install that"),
    ):
        failing = mock.Mock(side_effect=RuntimeError(reason))
        monkeypatch.setattr(Converted, "search", failing)
        with pytest.raises(ValueError, match=f"{folders[1]} .{reason}.: {remedy}"):
            model.translate(["w1"])


@pytest.mark.parametrize("threads", ["4,2", "", "many"])
def test_any_number_of_threads_is_read(folders, monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    monkeypatch.delattr(os, "sched_getaffinity")  # which Linux alone has
    assert load(folders[1]).translate(["w1"])


@pytest.mark.parametrize("name", ["model.bin", "config.json"])
def test_so_is_a_file_whose_checksum_is_unknown(folders, tmp_path, name):
    made = read_description(folders[1])
    files = {x: y for x, y in made.files.items() if x != name}
    with pytest.raises(ValueError, match=f"files must have {name}"):
        write_description(tmp_path, dataclasses.replace(made, files=files))


def test_what_it_cannot_do_is_refused(folders, teachers):
    for folder, options, message in (
        (folders[1], {"dtype": "bf16"}, "dtype must be float32 or int8"),
        (folders[1], {"dtype": "fp16"}, "dtype must be float32 or int8"),
        (folders[1], {"device": "cuda"}, "device must be cpu here"),
        (folders[1], {"beam": 1}, "--beam must be ≥ 2, one hypothesis per direction"),
        (folders[1], {"beam": 4, "nbest": 5}, "--nbest must be .* in 1 … 4, but is 5"),
        *(
            (teacher, {"rescore": 1.0}, "--rescore must be 0 for a model of one")
            for teacher in teachers
        ),
    ):
        with pytest.raises(ValueError, match=message):
            load(folder, **options)


# without torch


def python(*words, **options):
    """Run Python where there is neither torch nor fairseq."""
    path = f"{ROOT / 'tests' / 'torchless'}:{ROOT}"
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env={"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_it_needs_no_torch(folders):
    expected = load(folders[1]).translate(LINES)
    script = (
        "import sys, sbnmt_plugin; model = sbnmt_plugin.load(sys.argv[1])\n"
        "print(*model.translate(sys.stdin.read().splitlines()), sep='\\n')\n"
        "assert not {'torch', 'fairseq'} & {*sys.modules}"
    )
    text = "\n".join(LINES)
    for words in (["-c", script], ["-m", "sbnmt_plugin", "translate"]):
        done = python(*words, folders[1], input=text)
        assert done.stdout.splitlines() == expected, done.stderr
        assert not done.stderr
    assert python("-c", "import torch").returncode  # the twin: there is none


def test_a_folder_that_needs_torch_is_refused_in_a_line(folders):
    done = python("-m", "sbnmt_plugin", "translate", folders[0], input="w1")
    assert done.returncode == 2
    assert "needs fairseq, which is not installed" in done.stderr
    assert done.stderr.count("\n") == 1


def found_by(folder, threads, **options):
    """Return what a model finds in all its lines, and by how many workers."""
    model = Converted(folder, NAMES, threads=threads, **options)
    found = model.search([line.split() for line in LINES], 2, 0.6, 30)
    return model.workers, [sorted(own, key=lambda x: x[0]) for own in found]


def assert_divided(folder):
    """Check that a batch in two parts is searched as a whole one is."""
    whole, divided = found_by(folder, 2, workers=1), found_by(folder, 2)
    assert (whole[0], divided[0]) == (1, 2)
    for ours, theirs in zip(divided[1], whole[1], strict=True):
        assert [x for x, _ in ours] == [x for x, _ in theirs]
        scores = [[score for _, score in own] for own in (ours, theirs)]
        assert scores[0] == pytest.approx(scores[1], abs=NEAR)


def test_a_batch_is_divided_among_threads(folders, monkeypatch):
    assert_divided(folders[1])
    assert found_by(folders[1], 3)[0] == 1  # which two parts cannot share
    whole = Converted.side_by_side

    def mixed(self, rows, **options):
        found = whole(self, rows, **options)
        return found if self.workers == 1 else found[::-1]

    monkeypatch.setattr(Converted, "side_by_side", mixed)  # the twin
    with pytest.raises(AssertionError):
        assert_divided(folders[1])


def test_one_sentence_of_one_direction_is_one_part(teachers):
    model = Converted(teachers[1], NAMES[1:], threads=2)
    assert model.workers == 2 and len(model.search([["w1"]], 2, 1.0, 5)) == 1
