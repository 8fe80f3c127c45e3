"""``--sb-rescore``: against a slow reference on networks, and through the commands."""

import json
import math

import pytest
import torch
from commands import lines, run_generate, run_train
from helpers import sb_model, source
from searching import assert_same_answers, generate, gnmt, make_generator, texts

from sbnmt_plugin.search import rescoring, score_texts
from sbnmt_plugin.search.options import SearchOptions
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.tools.probes import without

LENGTHS = (7, 4, 6, 2)
OPTIONS = {"beam": 6, "penalty": gnmt(0.6), "max_len_b": 5}
LONG = {"max_len_b": 9, "no_repeat_ngram_size": 2}


def alone(models, tokens, b, direction):
    """Log-probability of one text in one direction, word by word, at λ = 0."""
    words = models[0].decoder.dictionary
    text = tokens[:-1][:: -1 if direction else 1]
    row = torch.tensor([words.index(TAGS[direction]), *text])
    blank = torch.full_like(row, words.pad())
    blank[0] = words.index(TAGS[1 - direction])
    pair = torch.stack([row, blank] if direction == 0 else [blank, row])
    found = []  # of each model, by place and word
    for model in models:
        net_input = {k: v[b : b + 1] for k, v in source(model, LENGTHS).items()}
        output, _ = model(**net_input, prev_output_tokens=pair)
        found.append(output[direction].log_softmax(-1))
    total = 0.0
    for place, label in enumerate([*text, words.eos()]):
        values = [float(lprobs[place, label]) for lprobs in found]
        mean = sum(math.exp(value) for value in values) / len(values)
        total += math.log(mean)
    return total


def crippled(**options):
    """A model, and its twin at λ = 0 with the same weights, in which nobody reads."""
    return sb_model(sb_lambda=0.9, **options), sb_model(sb_lambda=0.0, **options)


def assert_rescored(models, twins, weight, best=0, **more):
    inputs = source(models[0], LENGTHS)
    options = {**OPTIONS, **more}
    plain = generate(models, inputs, **options)
    found = generate(models, inputs, rescore=weight, rescore_best=best, **options)
    for b, (before, after) in enumerate(zip(plain, found)):
        expected = []
        for h in before[: best or None]:
            tokens = h["tokens"].tolist()
            both = [alone(twins, tokens, b, d) for d in (0, 1)]
            divisor = float(gnmt(0.6).worth(torch.tensor(len(tokens))))
            score = float(h["score"]) + weight * sum(both) / divisor
            expected.append((score, both, h))
        expected.sort(key=lambda entry: -entry[0])
        assert len(after) == len(expected)
        for h, (score, both, old) in zip(after, expected):
            assert h["tokens"].equal(old["tokens"])
            assert h["direction"] == old["direction"]
            assert float(h["score"]) == pytest.approx(score, abs=1e-10)
            assert float(h["pool_score"]) == float(old["score"])
            assert [float(h["l2r"]), float(h["r2l"])] == pytest.approx(both, abs=1e-10)


@pytest.mark.parametrize("weight", [0.3, 4.0])
def test_rescoring_equals_the_reference(weight):
    model, twin = crippled()
    assert_rescored([model], [twin], weight)


@pytest.mark.parametrize("nbest", [None, 1])
@pytest.mark.parametrize("best", [0, 1, 2, 3, 7])
def test_the_best_of_the_pool_are_rescored(best, nbest):
    """However many are asked for; test_penalties sees that these are final."""
    model, twin = crippled()
    assert_rescored([model], [twin], 4.0, best=best, nbest=nbest, **LONG)


@pytest.mark.parametrize("count", [2, 4, 6])
def test_the_check_of_the_best_can_fail(monkeypatch, count):
    monkeypatch.setattr(SearchOptions, "most_answers", count)
    with pytest.raises(AssertionError):
        test_the_best_of_the_pool_are_rescored(3, None)


def test_records_change_no_answer():
    """They see each direction's best beside, which is rescored for them alone."""
    model, _ = crippled()
    inputs = {"net_input": source(model, LENGTHS)}
    options = {**OPTIONS, **LONG, "rescore": 4.0}
    plain = make_generator([model], **options)
    recorded = make_generator([model], **options)
    seen = []
    recorded.recorder = lambda _, records: seen.extend(records)
    recorded.stop_rank = 6
    answers = [search.generate([model], inputs) for search in (plain, recorded)]
    assert_same_answers(*answers)
    for (winner, best), (answer, *_) in zip(seen, answers[1]):
        assert best[winner]["tokens"].equal(answer["tokens"])
        assert all("l2r" in hypothesis for hypothesis in best.values())


def rows_forced(monkeypatch, model, **options):
    """How many streams are scored once more, and how many were asked about."""
    streams = []
    score = rescoring.score_texts

    def counted(scorers, asked, *others):
        streams.extend(len(own) for own in asked)
        return score(scorers, asked, *others)

    with monkeypatch.context() as patch:
        patch.setattr(rescoring, "score_texts", counted)
        inputs = source(model, LENGTHS)
        found = generate([model], inputs, rescore=1.0, **{**OPTIONS, **options})
    texts = [{tuple(h["tokens"].tolist()) for h in own} for own in found]
    return sum(streams), 2 * sum(map(len, texts))


def test_a_score_that_is_no_number_is_refused(monkeypatch):
    """As the search refuses it: with it no order would mean anything."""
    score, (model, _) = rescoring.score_texts, crippled()
    monkeypatch.setattr(rescoring, "score_texts", lambda *x: score(*x) * math.nan)
    with pytest.raises(FloatingPointError, match="probabilities are not numbers"):
        generate([model], source(model, LENGTHS), rescore=1.0, **OPTIONS)


@pytest.mark.parametrize("unkpen", [0.0, 0.7])
def test_without_interaction_the_searchs_scores_are_enough(monkeypatch, unkpen):
    """Of the own direction, to 1e-10; a penalty is in them that is not the model's."""
    model, twin = crippled()
    assert_rescored([twin], [twin], 0.5, unkpen=unkpen)
    forced, all_of_them = rows_forced(monkeypatch, twin, unkpen=unkpen)
    assert forced == all_of_them if unkpen else forced <= all_of_them // 2
    forced, all_of_them = rows_forced(monkeypatch, model)
    assert forced == all_of_them


def test_scores_that_depend_on_the_other_stream_are_not_taken(monkeypatch):
    model, twin = crippled()
    monkeypatch.setattr(type(model.decoder), "interacts", False)
    with pytest.raises(AssertionError):
        assert_rescored([model], [twin], 0.5)


@pytest.mark.parametrize("fusion", ["tanh", "relu", "linear", "gate"])
def test_a_decoder_knows_whether_it_interacts(fusion):
    if fusion == "gate":
        assert sb_model(sb_fusion=fusion).decoder.interacts
        return
    for weight, learned in (0.1, False), (0.0, True):
        options = {"sb_lambda": weight, "sb_learn_lambda": learned}
        assert sb_model(sb_fusion=fusion, **options).decoder.interacts
    assert not sb_model(sb_fusion=fusion, sb_lambda=0.0).decoder.interacts


def test_rescoring_by_an_ensemble_equals_the_reference():
    pairs = [crippled(seed=seed) for seed in (1, 2)]
    models, twins = zip(*pairs)
    assert_rescored(list(models), list(twins), 0.5)


def test_the_rescoring_check_can_fail(monkeypatch):
    monkeypatch.setattr(score_texts, "backwards", lambda text: text)
    model, twin = crippled()
    with pytest.raises(AssertionError):
        assert_rescored([model], [twin], 0.5)


def test_what_is_read_across_does_not_count():
    """The reference above is at λ = 0; with the future it would be another."""
    model, _ = crippled()
    with pytest.raises(AssertionError):
        assert_rescored([model], [model], 0.5)


@pytest.mark.parametrize("size", [1, 40])
def test_passes_of_any_size_give_the_same(monkeypatch, size):
    model, _ = crippled()
    inputs = source(model, LENGTHS)
    whole = generate([model], inputs, rescore=0.5, **OPTIONS)
    monkeypatch.setattr(score_texts, "POSITIONS_AT_A_TIME", size)
    found = generate([model], inputs, rescore=0.5, **OPTIONS)
    assert_same_answers(found, whole)


def test_a_gate_is_rescored_with_a_future_of_zeros():
    model = sb_model(sb_fusion="gate")
    (found, *_) = generate([model], source(model, LENGTHS), rescore=1.0, **OPTIONS)
    assert all(float(h["l2r"]) < 0 and float(h["r2l"]) < 0 for h in found)


def test_generate_writes_all_parts_into_the_records(data, trained, tmp_path):
    plain = run_generate(data, trained, "--nbest", 4, "--lenpen", 0.6)
    path = tmp_path / "records.jsonl"
    words = ["--nbest", 4, "--lenpen", 0.6, "--sb-rescore", 2, "--sb-records", path]
    rescored = run_generate(data, trained, *words)
    assert sorted(lines(plain, "H")) == sorted(lines(rescored, "H"))
    for line in path.read_text().splitlines():
        record = json.loads(line)
        hypotheses = lines(rescored, "H")[record["id"]]
        scores = [float(score) for score, _ in hypotheses]
        assert scores == sorted(scores, reverse=True)
        best = record[record["winner"]]
        assert best["score"] == pytest.approx(scores[0] * math.log(2), abs=1e-4)
        length = len(best["text"].split()) + 1
        gained = (best["l2r"] + best["r2l"]) / ((5 + length) / 6) ** 0.6
        wanted = best["pool_score"] + 2 * gained
        assert best["score"] == pytest.approx(wanted, abs=1e-4)


def test_records_have_what_the_other_direction_gives(data, trained, tmp_path):
    """Also of a direction's best that is not among the answers."""
    path = tmp_path / "records.jsonl"
    words = ["--lenpen", 0, "--sb-rescore", 2, "--sb-rescore-best", 1, "--sb-records"]
    run_generate(data, trained, *words, path)
    found = 0
    for line in path.read_text().splitlines():
        record = json.loads(line)
        for best in filter(None, (record["l2r"], record["r2l"])):
            wanted = best["pool_score"] + 2 * (best["l2r"] + best["r2l"])
            assert best["score"] == pytest.approx(wanted, abs=1e-4)
            found += 1
    assert found > len(path.read_text().splitlines())


def test_validation_and_python_know_the_option(data, tmp_path):
    from sbnmt_plugin.families.sb.model import SBTransformerModel

    words = ["--arch", "sb_transformer_tiny", "--max-epoch", 1, "--eval-bleu"]
    words += ["--eval-bleu-args", '{"sb_rescore": 1.0}']
    run_train(data, tmp_path, *words)
    hub = SBTransformerModel.from_pretrained(
        str(tmp_path), "checkpoint_last.pt", str(data)
    )
    assert hub.translate(["w1 w2"], sb_rescore=1.0)
    for best, count in ((0, 4), (3, 3)):
        options = {"sb_rescore": 1.0, "sb_rescore_best": best}
        (found,) = hub.generate([hub.encode("w1 w2")], **options)
        assert len(found) == count
    refused = {
        "sb_rescore must be a number": {"sb_rescore": "much"},
        "sb_rescore_best must be a whole": {"sb_rescore_best": 1.5},
        "sb_rescore_best must be 0 without": {"sb_rescore_best": 2},
        "sb_rescore_best must be in 0 … 4": {"sb_rescore": 1, "sb_rescore_best": -1},
        "the hypotheses of beam, but is 5": {"sb_rescore": 1, "sb_rescore_best": 5},
    }
    for message, options in refused.items():
        with pytest.raises(ValueError, match=message):
            hub.translate(["w1 w2"], **options)


@pytest.mark.parametrize("fusion", ["tanh", "gate"])
def test_a_probe_without_a_future_may_rescore(fusion):
    """Rescoring gives the fusion no future of which the probe could take anything."""
    model = sb_model(sb_fusion=fusion)
    with without("future", [model]):
        found = generate([model], source(model, LENGTHS), rescore=1.0, **OPTIONS)
    if fusion == "tanh":
        twin = sb_model(sb_lambda=0.0)
        expected = generate([twin], source(twin, LENGTHS), rescore=1.0, **OPTIONS)
        assert texts(found) == texts(expected)
    assert all(float(h["l2r"]) < 0 for own in found for h in own)
