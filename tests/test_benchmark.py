"""The benchmark: that it compares like with like, and counts right."""

import json
import sys

import pytest
import torch

from sbnmt_plugin.tools.benchmark import decoding, floor, results, training
from sbnmt_plugin.tools.benchmark.models import Spec
from sbnmt_plugin.tools.benchmark.systems import SYSTEMS
from sbnmt_plugin.tools.benchmark.workers import Worker, peak_memory, reset_peak

TINY = Spec(size="tiny", vocabulary=50)
CASE = decoding.Case(batch=3, length=6, beam=4)


@pytest.fixture(scope="module")
def stations():
    names = [name for name in SYSTEMS if name != "CTranslate2"]
    return {name: decoding.Station(TINY, name, "float32") for name in names}


@pytest.mark.parametrize("name", ["fairseq", "SB-NMT", "Transformer in our search"])
def test_every_search_does_the_same_number_of_steps(stations, name):
    assert stations[name].prepare(CASE) == {"steps": 7}  # 6 tokens and </s>
    row = stations[name].measure()
    assert (row["sentences"], row["tokens"]) == (3, 21)
    assert row["seconds"] > 0 and row["memory"] > 0


def test_the_same_transformer_gives_the_same_texts(stations):
    """In fairseq's search and in ours, lengths being forced."""
    found = []
    for name in ("fairseq", "Transformer in our search"):
        stations[name].prepare(CASE)
        found.append([tokens for _, tokens in stations[name]._run().texts])
    assert found[0] == found[1]


def test_reranking_translates_too(stations):
    stations["Rerank-NMT"].prepare(CASE)
    assert stations["Rerank-NMT"].measure()["tokens"] == 21


def test_ctranslate2_translates_with_the_same_weights(stations):
    """Random weights put two words so close that rounding may decide."""
    pytest.importorskip("ctranslate2")
    converted = decoding.Station(TINY, "CTranslate2", "float32")
    converted.prepare(CASE)
    stations["fairseq"].prepare(CASE)
    texts = [
        [tokens for _, tokens in station._run().texts]
        for station in (converted, stations["fairseq"])
    ]
    assert sum(a == b for a, b in zip(*texts)) >= 2


def test_the_products_are_counted():
    """Size tiny: 64 channels, 128 within, 2 + 2 layers; 3 sentences, beam 4."""
    counted = floor.products(TINY, sentences=3, length=6, beam=4)
    encoder = 18 * (4 * 64 * 64 + 2 * 64 * 128) * 2
    crossed = 18 * 2 * 64 * 64 * 2
    step = 12 * ((6 * 64 * 64 + 2 * 64 * 128) * 2 + 64 * 50)
    assert sum(p.operations for p in counted) == 2 * (encoder + crossed + 7 * step)
    found = floor.Floor(TINY, "float32").measure(3, 6, 4)
    assert found["operations"] == sum(p.operations for p in counted)
    assert found["seconds"] > 0


def test_ratios_are_taken_round_by_round():
    def run(seconds):
        return {"seconds": seconds, "sentences": 10, "tokens": 70, "memory": 1.0}

    slow, fast = [run(2.0), run(4.0), run(3.0)], [run(1.0), run(1.0), run(3.0)]
    row = decoding.summary(fast, slow)
    assert (row["ratio, least"], row["ratio"], row["ratio, most"]) == (1, 2, 4)
    assert row["sentences/s"] == 10 and row["tokens/s"] == 70


@pytest.mark.parametrize("name", training.SYSTEMS)
def test_an_update_trains_on_as_many_sentences(name):
    case = training.Case(sentences=5, length=6, updates=2)
    station = training.Station(TINY, name, case, dropout=0.0, rank=0, port=0)
    before = [p.clone() for p in station.loaded.model.parameters()]
    head = station.prepare()
    assert head["sentences"] == 5
    streams = len(station.sample["net_input"]["prev_output_tokens"])
    assert streams == (10 if name == "SB-NMT" else 5)
    row = station.measure()
    assert sum(row[part] for part in training.PARTS) <= 1.5 * row["seconds"]
    after = station.loaded.model.parameters()
    assert any(not torch.equal(a, b) for a, b in zip(before, after))


def test_the_peak_of_memory_is_forgotten():
    """400 MiB that were used before are not those of the next run."""
    reset_peak("cpu")
    before = peak_memory("cpu")
    block = torch.ones(100 * 2**20)
    assert peak_memory("cpu") > before + 0.3
    del block
    reset_peak("cpu")
    assert peak_memory("cpu") < before + 0.3


def test_workers_do_not_interrupt_progress_bars(capfd):
    place = "sbnmt_plugin.tools.benchmark.floor:Floor"
    with Worker(place, (TINY, "float32"), threads=1) as worker:
        assert worker.ask("measure", 3, 6, 4)["seconds"] > 0
    assert capfd.readouterr().err == ""


def test_a_worker_reports_its_errors():
    wrong = "sbnmt_plugin.tools.benchmark.floor:Floor", (TINY, "float99")
    with pytest.raises(RuntimeError, match="float99"):
        Worker(*wrong, threads=1)


def command(tmp_path, monkeypatch, *words):
    from sbnmt_plugin.tools.commands import benchmark

    monkeypatch.setattr(
        sys, "argv", ["benchmark.py", "--output", str(tmp_path), *words]
    )
    benchmark.main()


def test_the_command_writes_table_json_and_plot(tmp_path, monkeypatch, capsys):
    """Two systems, each in a process of its own."""
    from sbnmt_plugin.tools.commands import benchmark

    monkeypatch.setattr(benchmark, "LENGTHS", (3, 5))
    monkeypatch.setattr(benchmark, "BEAMS", ())
    monkeypatch.setattr(benchmark, "BATCHES", ())
    monkeypatch.setattr(
        benchmark,
        "systems",
        lambda args: [("fairseq", "float32"), ("SB-NMT", "float32")],
    )
    words = "--size tiny --vocabulary 50 --rounds 1 --threads 1 --max-tokens 30"
    words += " --parts decoding,training,processes --sentences 4"
    command(tmp_path, monkeypatch, *words.split())
    found = json.loads((tmp_path / "benchmark.json").read_text())
    cases = {(r["batch"], r["length"]) for r in found["decoding"]}
    assert cases == {(50, 25), (1, 25), (50, 3), (50, 5)}
    assert {r["processes"] for r in found["training"]} == {1, 2}
    assert all(r["sentences"] == 4 for r in found["training"])
    text = (tmp_path / "benchmark.md").read_text()
    assert text in capsys.readouterr().out
    assert "| SB-NMT" in text and found["commit"] in text
    assert (tmp_path / "benchmark.svg").read_text().startswith("<?xml")


def test_the_plot_goes_from_left_to_right(monkeypatch):
    from matplotlib.axes import Axes

    drawn, plot = [], Axes.plot

    def watched(self, x, *rest, **looks):
        drawn.append(list(x))
        return plot(self, x, *rest, **looks)

    monkeypatch.setattr(Axes, "plot", watched)
    common = {"system": "x", "dtype": "float32", "batch": 50, "max tokens": None}
    rows = [
        {**common, "length": length, "beam": 4, "seconds": [1.0]}
        for length in (25, 10, 50)
    ]
    assert results.cost_figure(rows) is not None
    assert drawn == [[10, 25, 50]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--parts decoding,cooking", "--parts must be of"),
        ("--size huge", "--size must be one of tiny"),
        ("--systems Moses", "--systems must be of"),
        ("--rounds 0", "--rounds must be ≥ 1"),
        ("--dropout 1", "--dropout must be in"),
        ("--work nowhere", "--work must be a finished recipe's folder"),
    ],
)
def test_wrong_options_are_named(tmp_path, monkeypatch, words, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        command(tmp_path, monkeypatch, *words.split())
    assert list(tmp_path.iterdir()) == []


def test_narrow_numbers_are_compared_with_wide_ones():
    class Told:
        def __init__(self, *texts):
            self.ask = lambda method: list(texts)

    rows = [{"system": "x", "dtype": kind} for kind in ("float32", "bfloat16")]
    told = {("x", "float32"): Told("a", "b", "c", "d")}
    decoding.compare_texts(rows, told | {("x", "bfloat16"): Told("a", "b", "c", "e")})
    assert "as in float32" not in rows[0]
    assert rows[1]["as in float32"] == 0.75


def test_the_tables_leave_out_what_is_empty():
    row = {
        "system": "x",
        "dtype": "float32",
        "batch": 50,
        "max tokens": None,
        "length": 25,
        "beam": 4,
        "memory": 1.0,
        "seconds": [1.0],
        **{f"ratio{end}": 1.0 for end in ("", ", least", ", most")},
        **{"sentences/s": 1.0, "tokens/s": 2.0, "memory ratio": 1.0},
    }
    header = results.decoding_table([row])[0]
    assert "tok. BLEU" not in header and "steps" not in header
    assert "steps" in results.decoding_table([{**row, "steps": 26}])[0]
