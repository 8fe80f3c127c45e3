"""ABD-NMT's search: two beams, one after the other, and what belongs to them."""

from argparse import Namespace

import pytest
import torch
from helpers import abd_model, dictionary, source
from nets import EXACT
from reference import assert_found, search
from scripted import EOS, NEVER, SYMBOLS, TAGS, AsynchronousModel, sample, script_row
from searching import assert_same_answers, generate, gnmt, texts

from sbnmt_plugin.config import task_config
from sbnmt_plugin.families.abd.model import ABDTransformerModel
from sbnmt_plugin.families.abd.search import AsynchronousGenerator
from sbnmt_plugin.layout import L2R, R2L, Pairing
from sbnmt_plugin.search.options import SearchOptions
from sbnmt_plugin.symbols import TAGS as NAMES_OF_TAGS
from sbnmt_plugin.task import SBTranslationTask
from sbnmt_plugin.tools.probes import without

SENTENCES = list(range(20, 27))
SHIFTED = Pairing("rank", shift=1)


def two_stage(models, batch, prefix=None, recorder=None, **options):
    chosen = SearchOptions(penalty=gnmt(0.6), max_len_b=7, min_len=2, **options)
    generator = AsynchronousGenerator(models, SYMBOLS, chosen, recorder)
    return generator.generate(models, batch, prefix)


# against the search on lists, run twice


def reference(sentence, beam, rank=0, prefix=None, **options):
    """What is read, and the answers."""
    common = {"eos": EOS, "never": set(NEVER), "max_len": 7, "min_len": 2, "beam": beam}

    def backward(direction, own, partner):
        return script_row(sentence, R2L, own, [])

    read = search(backward, directions=(R2L,), **common, **options)[rank]
    seen = [TAGS[R2L], *read["tokens"][:-1][::-1]]

    def forward(direction, own, partner):
        return script_row(sentence, L2R, own, seen)

    found = search(forward, directions=(L2R,), prefix=prefix, **common, **options)
    return read["tokens"], found


def assert_as_reference(beam, rank=0, **options):
    """Property 4."""
    batch = sample(SENTENCES)
    found = two_stage([AsynchronousModel()], batch, beam=beam, **options)
    for sentence, hypotheses in zip(SENTENCES, found):
        read, expected = reference(sentence, beam, rank, **options)
        assert_found(hypotheses, expected)
        for hypothesis in hypotheses:
            assert hypothesis["partner_tokens"].tolist() == read[:-1][::-1]
    return found


@pytest.mark.parametrize("stop", ["bound", "first"])
@pytest.mark.parametrize("beam", [1, 2, 3, 5])
def test_the_search_equals_the_one_on_lists_run_twice(beam, stop):
    found = assert_as_reference(beam, stop=stop)
    assert len({len(best["tokens"]) for best, *_ in found}) > 1


def test_the_comparison_can_fail():
    """The best R2L hypothesis is read, not the second one."""
    with pytest.raises(AssertionError):
        assert_as_reference(3, rank=1)


def test_a_prefix_binds_the_second_search_alone():
    prefix = torch.tensor([[5, 4]] * len(SENTENCES))
    found = two_stage([AsynchronousModel()], sample(SENTENCES), prefix, beam=3)
    for sentence, hypotheses in zip(SENTENCES, found):
        read, expected = reference(sentence, 3, prefix=[5, 4])
        assert texts([hypotheses]) == [[entry["tokens"] for entry in expected]]
        assert all(h["tokens"].tolist()[:2] == [5, 4] for h in hypotheses)
        assert hypotheses[0]["partner_tokens"].tolist() == read[:-1][::-1]


def test_r2l_may_be_made_to_answer():
    told = []
    recorder = lambda sample, records: told.extend(records)  # noqa: E731
    options = {"beam": 3, "answer": "r2l", "recorder": recorder}
    found = two_stage([AsynchronousModel()], sample(SENTENCES), **options)
    for sentence, (best, *_), record in zip(SENTENCES, found, told):
        read, _ = reference(sentence, 3)
        assert best["tokens"].tolist() == read and best["direction"] == "r2l"
        assert record == ("r2l", {"r2l": best})
    with pytest.raises(ValueError, match="--prefix-size binds the start"):
        prefix = torch.tensor([[5]] * len(SENTENCES))
        two_stage([AsynchronousModel()], sample(SENTENCES), prefix, **options)


def test_records_hold_the_answer_and_what_was_read():
    told = []
    recorder = lambda sample, records: told.extend(records)  # noqa: E731
    found = two_stage(
        [AsynchronousModel()], sample(SENTENCES), beam=3, recorder=recorder
    )
    for sentence, (best, *_), (winner, told_of) in zip(SENTENCES, found, told):
        read, _ = reference(sentence, 3)
        assert winner == "l2r" and told_of["l2r"] is best
        assert told_of["r2l"]["tokens"].tolist() == read
    assert len(told) == len(SENTENCES)


# on real networks


@pytest.mark.parametrize("beam", [1, 2, 3])
def test_a_score_is_the_teacher_forced_one(beam, read=None):
    """Property 5: given the ȳ that is returned."""
    model = abd_model()
    net_input = source(model)
    words = model.decoder.dictionary
    starts = [words.index(tag) for tag in NAMES_OF_TAGS]
    results = generate([model], net_input, beam=beam, penalty=gnmt(0.0))
    for b, hypotheses in enumerate(results):
        for hypothesis in hypotheses:
            own, other = hypothesis["tokens"][:-1], hypothesis["partner_tokens"]
            rows = [own, other if read is None else read(own)]
            width = max(map(len, rows)) + 1
            prev = torch.full((2, width), words.pad())
            for row, start, tokens in zip(prev, starts, rows):
                row[: len(tokens) + 1] = torch.tensor([start, *tokens])
            output, _ = model(
                net_input["src_tokens"][b : b + 1],
                net_input["src_lengths"][b : b + 1],
                prev,
            )
            lprobs = output[L2R].log_softmax(-1)[: len(own) + 1]
            expected = lprobs.gather(1, hypothesis["tokens"][:, None]).sum()
            torch.testing.assert_close(hypothesis["score"], expected, **EXACT)


def test_the_score_check_can_fail():
    """Given the answer itself as the text that is read."""
    with pytest.raises(AssertionError):
        test_a_score_is_the_teacher_forced_one(2, lambda own: own.flip(0))


def test_another_sentences_text_and_silence_change_the_answer():
    """Property 9 in small; the toy's row shows it on a trained model."""
    model = abd_model()
    plain = texts(generate([model]))
    assert texts(generate([model], pairing=SHIFTED)) != plain
    with without("future", [model]):
        silent = texts(generate([model]))
        assert silent != plain
        assert texts(generate([model], pairing=SHIFTED)) == silent
    assert texts(generate([model])) == plain


def test_an_ensemble_agrees_on_what_is_read(monkeypatch):
    """Property 10: with itself it is the model; with another one both read one text."""
    model, other = abd_model(), abd_model(seed=2)
    alone, twice = generate([model]), generate([model, model])
    assert_same_answers(alone, twice)
    read, right = [], ABDTransformerModel.with_reverse

    def noted(self, encoder_out, tokens, live=None):
        read.append((self, tokens))
        return right(self, encoder_out, tokens, live)

    monkeypatch.setattr(ABDTransformerModel, "with_reverse", noted)
    pair = generate([model, other])
    assert [reader for reader, _ in read] == [model, other]
    assert read[0][1].equal(read[1][1])
    assert texts(pair) != texts(alone) and texts(pair) != texts(generate([other]))


# the task


def task(**options):
    words = dictionary()
    return SBTranslationTask(task_config()(sb_bf16=False, **options), words, words)


@pytest.mark.parametrize("beam", [1, 4, 5])
def test_each_search_has_the_whole_beam(beam, caplog):
    made = task().build_generator([abd_model()], Namespace(beam=beam, nbest=beam))
    assert isinstance(made, AsynchronousGenerator)
    assert made.options.beam == beam
    found = made.generate(made.models, {"net_input": source(made.models[0])})
    assert all(len(hypotheses) == beam for hypotheses in found)
    assert "is odd" not in caplog.text
    with pytest.raises(ValueError, match="--beam must be ≥ 1"):
        task().build_generator([abd_model()], Namespace(beam=0))


@pytest.mark.parametrize(
    ("flag", "options"),
    [
        ("--sb-pairing best", {"sb_pairing": "best"}),
        ("--sb-rescore", {"sb_rescore": 2.0}),
        ("--sb-trace", {"sb_trace": "trace.jsonl"}),
    ],
)
def test_what_needs_directions_that_meet_is_refused(flag, options, tmp_path):
    if "sb_trace" in options:
        options = {"sb_trace": str(tmp_path / options["sb_trace"])}
    with pytest.raises(ValueError, match=f"{flag} is not supported by an abd_trans"):
        task(**options).build_generator([abd_model()], Namespace(beam=4))
