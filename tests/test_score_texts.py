"""Scores of given texts: against a forward pass of one text at a time, and one path."""

import ast

import pytest
import torch
from commands import ROOT
from helpers import enat_model, rnn_model, source, transformer

from sbnmt_plugin.layout import L2R, R2L
from sbnmt_plugin.network import decoder
from sbnmt_plugin.search import score_texts
from sbnmt_plugin.search.options import Symbols
from sbnmt_plugin.search.scorer import Scorer

pytestmark = pytest.mark.usefixtures("float64_fairseq")
LENGTHS = (7, 4, 6)
STREAMS = [  # of three sentences, one of which has none
    [((5, 6, 7), L2R), ((5, 6, 7), R2L), ((8,), L2R)],
    [],
    [((4, 9, 10, 6, 5), R2L)],
]


def symbols_of(model):
    words = model.decoder.dictionary
    eos = words.eos()
    return Symbols(words.pad(), eos, words.unk(), starts=(eos, eos), never=())


def slow(model, sentence, text, direction):
    """Log-probabilities of one text's tokens by the model's own forward pass."""
    net = {k: v[sentence : sentence + 1] for k, v in source(model, LENGTHS).items()}
    eos = model.decoder.dictionary.eos()
    written = text[:: -1 if direction == R2L else 1]
    previous = torch.tensor([[eos, *written]])
    output = model(**net, prev_output_tokens=previous)
    lprobs = model.get_normalized_probs(output, log_probs=True)[0]
    return [float(row[token]) for row, token in zip(lprobs, [*written, eos])]


def scored(model, streams=STREAMS):
    symbols = symbols_of(model)
    ended = [[((*text, symbols.eos), d) for text, d in own] for own in streams]
    scorers = [Scorer.encode(model, source(model, LENGTHS))]
    return score_texts.score_texts(scorers, ended, symbols, torch.device("cpu"))


def assert_as_slow(streams=STREAMS, shape=(3, 3, 6)):
    model = transformer().double().eval()
    found = scored(model, streams)
    assert found.shape == shape and found.dtype == torch.float64
    for sentence, own in enumerate(streams):
        rows = [slow(model, sentence, *stream) for stream in own]
        for row, expected in zip(found[sentence], rows):
            padded = expected + [0.0] * (found.size(2) - len(expected))
            assert row.tolist() == pytest.approx(padded, abs=1e-10)


@pytest.mark.parametrize("size", [1, 2**12])
def test_every_token_has_the_score_of_a_forward_pass(size, monkeypatch):
    monkeypatch.setattr(score_texts, "POSITIONS_AT_A_TIME", size)
    assert_as_slow()


def test_texts_that_are_not_turned_round_are_noticed(monkeypatch):
    monkeypatch.setattr(score_texts, "backwards", lambda text: text)
    with pytest.raises(AssertionError):
        assert_as_slow()


ALIKE = [  # beginnings that two, three or no texts share; the third turned round
    [((5, 6, 7), L2R), ((5, 6, 7, 8), L2R), ((9, 6, 5), R2L), ((4, 6, 7), L2R)],
    [((4, 4), L2R)],
    [((10, 5), L2R), ((10, 6), L2R)],
]


@pytest.mark.parametrize("logits_at_a_time", [1, 2**20])
def test_beginnings_that_texts_share_are_computed_once(logits_at_a_time, monkeypatch):
    monkeypatch.setattr(decoder, "LOGITS_AT_A_TIME", logits_at_a_time)
    sizes, right = [], score_texts.shared_beginnings

    def counted(inputs, real):
        found = right(inputs, real)
        sizes.append((int(real.sum()), len(found[0])))
        return found

    monkeypatch.setattr(score_texts, "shared_beginnings", counted)
    assert_as_slow(ALIKE, (3, 4, 5))
    assert sizes == [(31, beginnings(ALIKE))]


def beginnings(streams):
    """Number of different beginnings, the empty one too, summed over sentences."""
    count = 0
    for own in streams:
        texts = [text[:: -1 if direction == R2L else 1] for text, direction in own]
        count += len({text[:end] for text in texts for end in range(len(text) + 1)})
    return count


def test_of_more_texts_than_a_byte_counts_each_shows_the_first_that_began_so():
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randint(3, (2, 300, 4), generator=generator)
    real = torch.ones(600, 4, dtype=torch.bool)
    live, shown = score_texts.shared_beginnings(inputs, real)
    found = live[shown].view(4, 600).t().tolist()  # the place that each place shows
    for b, texts in enumerate(inputs.tolist()):
        known = {}
        for k, text in enumerate(texts):
            for t in range(4):
                first = known.setdefault(tuple(text[: t + 1]), k)
                assert found[b * 300 + k][t] == t * 600 + b * 300 + first


def test_texts_that_have_only_a_word_in_common_are_told_apart(monkeypatch):
    monkeypatch.setattr(
        torch.Tensor, "cumprod", lambda same, dim, dtype: same.to(dtype)
    )
    with pytest.raises(AssertionError):
        assert_as_slow(ALIKE, (3, 4, 5))


@pytest.mark.parametrize("model", [rnn_model(), enat_model()], ids=["rnn", "enat"])
def test_a_model_that_scores_no_texts_is_refused(model):
    score_texts.check_scores_texts(transformer(), "--l2r")
    with pytest.raises(ValueError, match="--l2r must be a Transformer, which scores"):
        score_texts.check_scores_texts(model, "--l2r")


def test_no_text_at_all_has_no_score():
    assert scored(transformer(), [[], [], []]).shape == (3, 0, 0)


def callers(package, method):
    """Modules that call a method of this name."""
    return {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == method
    }


def test_nothing_else_scores_given_texts(package=ROOT / "sbnmt_plugin"):
    scoring = {"search/score_texts.py"}
    assert callers(package, "log_probabilities") <= scoring
    training = {f"training/{name}.py" for name in ("criterion", "read_bits")}
    known = {"network/fairseq_decoder.py", *training}
    assert callers(package, "get_normalized_probs") <= scoring | known


def test_a_second_path_is_noticed(tmp_path):
    (tmp_path / "tools").mkdir()
    words = "model.decoder.log_probabilities(inputs)"
    (tmp_path / "tools" / "reranking.py").write_text(words)
    with pytest.raises(AssertionError, match=r"tools/reranking.py"):
        test_nothing_else_scores_given_texts(tmp_path)
