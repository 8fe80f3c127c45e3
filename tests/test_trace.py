"""--sb-trace: what it says is what the search did; without it nothing is kept."""

import json

import pytest
import torch
from commands import lines, run_generate, run_interactive
from helpers import dictionary, sb_model, source, transformer
from searching import make_generator, power, texts

from sbnmt_plugin.layout import NAMES
from sbnmt_plugin.network.attention import SBSelfAttention
from sbnmt_plugin.search import trace as trace_module
from sbnmt_plugin.search.lengths import horizon
from sbnmt_plugin.search.trace import Tracer, TraceWriter, rounded

WORDS = 9


def traced(model, path, pairing="rank", beam=4, **options):
    """Results of a search, and its trace."""
    options = {"beam": beam, "pairing": pairing, "max_len_b": 6, **options}
    generator = make_generator([model], **options)
    writer = TraceWriter(str(path), dictionary(WORDS), dictionary(WORDS))
    generator.tracer = Tracer(writer, [model], generator.options)
    results = generator.generate([model], {"net_input": source(model)})
    return results, [json.loads(line) for line in path.read_text().splitlines()]


def written(trace, name, step, rank):
    """A live hypothesis, by who continued whom."""
    tokens = []
    while step:
        entry = trace["steps"][step - 1][name][rank]
        tokens.insert(0, entry["token"])
        rank, step = entry["parent"], step - 1
    return tokens


def assert_trace_tells_the_search(results, traces):
    for answers, trace in zip(results, traces):
        words = dictionary(WORDS)
        finished = [x for step in trace["steps"] for x in step["finished"]]
        assert len(answers) == len(trace["pool"]) == trace["beam"]
        for answer, entry in zip(answers, trace["pool"]):
            tokens = [words[int(t)] for t in answer["tokens"][:-1]]
            assert entry["tokens"] == tokens
            assert entry["direction"] == answer["direction"]
            total = float(answer["positional_scores"].sum())
            assert entry["total"] == pytest.approx(total, abs=1e-3)
            # it ended in the step that says so, as a continuation of a live one
            (at,) = [x for x in finished if same(x, entry)]
            assert at["total"] == pytest.approx(total, abs=1e-3)
            step = at["length"] - 1
            own = tokens if at["direction"] == "l2r" else tokens[::-1]
            lives = [
                written(trace, at["direction"], step, k)
                for k in range(trace["beam"] // 2 if step else 1)
            ]
            assert own in lives
        for number, step in enumerate(trace["steps"], start=1):
            for name in NAMES:
                for entry in step[name]:
                    assert len(entry["look"]) == number
                    assert sum(entry["look"]) == pytest.approx(1, abs=0.001)
                    assert 0 <= entry["future"] <= 1
        last = trace["steps"][-1]
        assert last["worst"] == trace["pool"][-1]["score"]
        assert last["bound"] is None or last["bound"] <= last["worst"]


def same(one, other):
    keys = ("direction", "tokens", "score", "length")
    return all(one[key] == other[key] for key in keys)


@pytest.mark.parametrize("pairing", ["rank", "best"])
def test_the_trace_tells_what_the_search_did(tmp_path, pairing):
    found = traced(sb_model(sb_lambda=1.0), tmp_path / "t", pairing)
    assert_trace_tells_the_search(*found)
    moved = [x for t in found[1] for s in t["steps"] for x in s["l2r"] if x["parent"]]
    assert moved, "no hypothesis ever overtook another: the check sees too little"
    assert any(x["partner"] for x in moved) == (pairing == "rank")


def test_the_check_of_the_trace_can_fail(tmp_path, monkeypatch):
    def stuck(self, batch, parents, length):
        rows = torch.arange(len(parents))  # as if nobody were overtaken
        return original(self, batch, rows, length)

    original = Tracer.step
    monkeypatch.setattr(Tracer, "step", stuck)
    with pytest.raises(AssertionError):
        assert_trace_tells_the_search(*traced(sb_model(sb_lambda=1.0), tmp_path / "t"))


@pytest.mark.parametrize("pairing", ["rank", "best"])
def test_weights_and_shares_follow_the_formulas(tmp_path, pairing):
    """Weights and shares, by the formulas, on the rows of each step."""
    model = sb_model(sb_lambda=0.7)
    path = tmp_path / "t"
    module = model.decoder.layers[-1].self_attn
    seen = []
    traced(model, path, pairing)
    kept = module.watcher

    def spy(query, key, mask, history, future):
        kept(query, key, mask, history, future)
        weights, share = tracer._looks[-1]
        beam = tracer.layout.beam
        for row in range(len(weights)):
            stream, rank = divmod(row, beam)
            other = stream + 1 if stream % 2 == 0 else stream - 1
            theirs = 0 if pairing == "best" else rank
            past = mask[other, 0, theirs] == 0  # its own slots, one a step
            heads = query.size(1)
            mean = torch.zeros(int(past.sum()), dtype=torch.float64)
            ratio = 0.0
            for head in range(heads):
                products = key[other, head][past] @ query[stream, head, rank]
                products = products / query.size(-1) ** 0.5
                mean += products.softmax(0) / heads
                kept_part = history[stream, head, rank].norm()
                added = (0.7 * future[stream, head, rank].tanh()).norm()
                ratio += float(added / (kept_part + added)) / heads
            assert torch.allclose(weights[row].double(), mean, atol=1e-5)
            assert float(share[row]) == pytest.approx(ratio, abs=1e-5)
            seen.append(row)

    tracer = kept.func.__self__
    module.watcher = spy
    generator = make_generator([model], beam=4, pairing=pairing, max_len_b=4)
    generator.tracer = tracer
    tracer.writer.path = str(path) + "2"
    generator.generate([model], {"net_input": source(model)})
    assert len(seen) > 12


def test_the_check_of_weights_can_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_module, "opposite", lambda rows: rows)
    with pytest.raises(AssertionError):
        test_weights_and_shares_follow_the_formulas(tmp_path, "rank")


def looks_of(blind, path):
    """Every attention to a partner of several tokens, of a model with a reader."""
    model = sb_model(sb_lambda=0.7, sb_reader=True)
    if blind:  # all keys of reading are alike, those of a stream's own past are not
        torch.nn.init.zeros_(model.decoder.layers[-1].self_attn.reader.k_proj.weight)
    _, traces = traced(model, path)
    looks = [x["look"] for t in traces for s in t["steps"] for x in s["l2r"]]
    return [look for look in looks if len(look) > 1]


def test_a_reader_is_whose_looks_are_traced(tmp_path):
    even = [max(look) - min(look) < 1e-3 for look in looks_of(True, tmp_path / "b")]
    assert even and all(even)
    assert max(max(x) - min(x) for x in looks_of(False, tmp_path / "s")) > 0.1


@pytest.mark.parametrize("fusion", ["linear", "relu", "gate"])
def test_every_fusion_has_a_share(tmp_path, fusion):
    weight = {} if fusion == "gate" else {"sb_lambda": 0.5}
    _, traces = traced(sb_model(sb_fusion=fusion, **weight), tmp_path / "t")
    shares = [x["future"] for t in traces for s in t["steps"] for x in s["r2l"]]
    assert 0 < sum(shares) / len(shares) < 1


def test_without_future_its_share_is_nothing(tmp_path):
    _, traces = traced(sb_model(sb_lambda=0.0), tmp_path / "t")
    shares = [x["future"] for t in traces for s in t["steps"] for x in s["l2r"]]
    assert set(shares) == {0.0}


# long texts score best, so that the horizon ends the search
FAR = {"max_len_b": 25, "no_repeat_ngram_size": 2, "penalty": power(1.5)}


@pytest.mark.parametrize("options", [{"max_len_b": 6}, FAR], ids=["near", "far"])
def test_tracing_changes_no_result_and_is_off_by_default(tmp_path, options):
    model = sb_model(sb_lambda=1.0)
    generator = make_generator([model], beam=4, **options)
    assert generator.tracer is None and SBSelfAttention.watcher is None
    watched = [m for m in model.modules() if getattr(m, "watcher", None) is not None]
    assert watched == []
    plain = generator.generate([model], {"net_input": source(model)})
    results, _ = traced(model, tmp_path / "t", **options)
    assert texts(plain) == texts(results)
    for ones, others in zip(plain, results):
        assert [float(x["score"]) for x in ones] == [float(x["score"]) for x in others]


def test_a_search_that_ends_at_its_horizon_says_so(tmp_path):
    """By a bound above the worst; it has no step more than the pool allowed."""
    _, traces = traced(sb_model(sb_lambda=1.0), tmp_path / "t", **FAR)
    ends = [(trace, trace["steps"][-1]) for trace in traces]
    lives = [(trace, last) for trace, last in ends if last["bound"] is not None]
    far = [trace for trace, last in lives if last["bound"] > last["worst"]]
    assert far
    for trace in far:
        full = [s for s in trace["steps"] if s["worst"] is not None]
        filled = len(trace["steps"]) - len(full) + 1
        assert len(trace["steps"]) == horizon(filled)
    _, traces = traced(sb_model(sb_lambda=1.0), tmp_path / "b", **FAR, stop="bound")
    for trace in traces:
        last = trace["steps"][-1]
        assert last["bound"] is None or last["bound"] <= last["worst"]


def test_scores_that_are_none_are_null():
    values = [float("-inf"), float("inf"), float("nan"), 1.23456]
    assert [rounded(x) for x in values] == [None, None, None, 1.2346]


def test_another_familys_decoder_has_no_trace():
    generator = make_generator([sb_model()], beam=2)
    with pytest.raises(ValueError, match=r"--sb-trace .* TransformerDecoderBase does"):
        Tracer(None, [transformer()], generator.options)


@pytest.mark.parametrize("others", [(), ("--sb-rescore", 1)], ids=str)
def test_fairseq_generate_writes_the_trace(data, trained, tmp_path, others):
    path, records = tmp_path / "t.jsonl", tmp_path / "r.jsonl"
    words = ["--sb-trace", path, "--sb-records", records, "--batch-size", 4]
    output = run_generate(data, trained, *words, *others)
    found = {t["id"]: t for t in map(json.loads, path.read_text().splitlines())}
    won = {r["id"]: r for r in map(json.loads, records.read_text().splitlines())}
    answers = lines(output, "H")
    assert set(found) == set(answers) == set(won)
    for i, trace in found.items():
        best = trace["pool"][0]
        assert " ".join(best["tokens"]) == answers[i][0][1]
        assert best["direction"] == won[i]["winner"]
        assert trace["source"] == won[i]["source"]
        assert best["score"] == pytest.approx(
            won[i][won[i]["winner"]]["score"], abs=1e-4
        )
        assert trace["rescore"] == bool(others)
        for entry in trace["pool"] if others else ():
            both = (entry["l2r"] + entry["r2l"]) * 6 / (5 + entry["length"])
            assert entry["score"] == pytest.approx(entry["pool_score"] + both, abs=1e-3)
    with pytest.raises(ValueError, match=r"--sb-trace .* must be a new file"):
        run_generate(data, trained, "--sb-trace", path)


def test_interactive_writes_it_too(data, trained, tmp_path):
    run_interactive(data, trained, "w1 w2\nw3\n", "--sb-trace", tmp_path / "t")
    found = (tmp_path / "t").read_text().splitlines()
    assert [json.loads(line)["source"] for line in found] == ["w1 w2", "w3"]
