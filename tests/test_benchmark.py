"""The benchmark: that it compares like with like, and counts right."""

import contextlib
import json
import sys
from argparse import Namespace

import pytest
import torch

from sbnmt_plugin.search.penalties import LengthPenalty
from sbnmt_plugin.tools import in_use
from sbnmt_plugin.tools.benchmark import choices, decoding, measuring, results, stations
from sbnmt_plugin.tools.benchmark.models import Spec, trained_model
from sbnmt_plugin.tools.benchmark.stations import peak_memory, reset_peak
from sbnmt_plugin.tools.benchmark.systems import SYSTEMS
from sbnmt_plugin.tools.commands import benchmark


def decoding_table(*rows):
    return results.table(rows)


TINY = Spec(size="tiny", vocabulary=50)
CASE = decoding.Case(batch=3, length=6, beam=4)
ROW = {"system": "x", "dtype": "y", "batch": 1, "max tokens": None, "beam": 4}


@pytest.fixture(scope="module")
def held():
    names = [name for name in SYSTEMS if name != "CTranslate2"]
    return {name: decoding.Station(TINY, name, "float32") for name in names}


@pytest.mark.parametrize("name", ["fairseq", "SB-NMT", "Transformer in our search"])
def test_every_search_does_the_same_number_of_steps(held, name):
    assert held[name].prepare(CASE)["steps"] == 7  # 6 tokens and </s>
    row = held[name].measure()
    assert (row["sentences"], row["tokens"]) == (3, 21)
    assert row["seconds"] > 0 and row["memory"] > 0


def test_operators_are_counted_without_views():
    model = Namespace(decoder=Namespace(layers=[torch.nn.Identity()]))
    with decoding.Counts(model) as counts:
        model.decoder.layers[0](torch.ones(2, 3).t() + 1)
    assert (counts.steps, counts.operators) == (1, 2)  # ones, add


def test_a_step_has_few_operators(held):
    """Of a step of two layers, encoder and answers shared out among all steps."""
    station = held["SB-NMT"]
    for batch in (3, 12):
        case = decoding.Case(batch=batch, length=24, beam=4)
        assert station.prepare(case)["operators"] < 150


def test_the_count_of_operators_can_fail(held, monkeypatch):
    """Where every step asks ten times what a length is worth."""
    score = LengthPenalty.score

    def anew(self, total, worth):
        for _ in range(10):
            self.worth(torch.full_like(total, 7).to(torch.long))
        return score(self, total, worth)

    monkeypatch.setattr(LengthPenalty, "score", anew)
    with pytest.raises(AssertionError):
        test_a_step_has_few_operators(held)


def test_the_same_transformer_gives_the_same_texts(held):
    """In fairseq's search and in ours, lengths being forced."""
    found = []
    for name in ("fairseq", "Transformer in our search"):
        held[name].prepare(CASE)
        found.append(held[name].translate())
    assert found[0] == found[1]


@pytest.mark.parametrize("name, passes", [("SB-NMT", 0), ("SB-NMT rescored", 1)])
def test_rescoring_is_measured_where_it_says_so(held, monkeypatch, name, passes):
    decoder, seen = held[name].system.loaded.model.decoder, []
    scored = decoder.log_probabilities
    monkeypatch.setattr(
        decoder, "log_probabilities", lambda *args: seen.append(1) or scored(*args)
    )
    held[name].prepare(CASE)
    seen.clear()
    held[name].measure()
    assert len(seen) == passes


@pytest.mark.parametrize("name", choices.SLOW)
def test_the_slow_systems_translate_too(held, name):
    held[name].prepare(CASE)
    assert held[name].measure()["tokens"] == 21


def test_ctranslate2_translates_with_the_same_weights(held):
    """Random weights put two words so close that rounding may decide."""
    pytest.importorskip("ctranslate2")
    converted = decoding.Station(TINY, "CTranslate2", "float32")
    converted.prepare(CASE)
    held["fairseq"].prepare(CASE)
    texts = converted.translate(), held["fairseq"].translate()
    assert sum(a == b for a, b in zip(*texts)) >= 2


def test_ratios_are_taken_round_by_round():
    def run(seconds):
        base = {"seconds": seconds, "sentences": 10, "tokens": 70, "memory": 1.0}
        return [{**base, "each": [seconds / 2] * 2}]

    slow, fast = [run(2.0), run(4.0), run(3.0)], [run(1.0), run(1.0), run(3.0)]
    row = decoding.summary(fast, slow)
    assert (row["ratio, least"], row["ratio"], row["ratio, most"]) == (1, 2, 4)
    assert row["sentences/s"] == 10 and row["tokens/s"] == 70
    assert "ms, half" not in row  # batches of five


def test_one_sentence_at_a_time_has_its_percentiles():
    each = [n / 1000 for n in range(1, 101)]
    run = {"seconds": 5.05, "sentences": 100, "tokens": 700, "memory": 1.0}
    row = decoding.summary([[{**run, "each": each}]] * 2, None)
    assert row["ms, half"] == pytest.approx(50.5)
    assert row["ms, 95 %"] == pytest.approx(95.5, abs=0.5)
    table = decoding_table({**ROW, **row})
    assert "ms a sentence, half ≤" in table[0] and "50.5" in table[-1]


def test_the_peak_of_memory_is_forgotten():
    """400 MiB that were used before are not those of the next run."""
    reset_peak("cpu")
    before = peak_memory("cpu")
    block = torch.ones(100 * 2**20)
    assert peak_memory("cpu") > before + 0.3
    del block
    reset_peak("cpu")
    assert peak_memory("cpu") < before + 0.3


@pytest.fixture
def worker():
    """Return a function that makes workers, which end with the test."""
    with contextlib.ExitStack() as stack:

        def made(place, *arguments):
            one = stations.Worker(place, arguments, threads=1)
            stack.callback(one.close)
            return one

        yield made


PLACE = "sbnmt_plugin.tools.benchmark.decoding:Station"


def test_workers_do_not_interrupt_progress_bars(worker, capfd):
    one = worker(PLACE, TINY, "fairseq", "float32")
    (head,) = stations.answers([one.ask("prepare", CASE)])
    assert head["steps"] == 7
    assert capfd.readouterr().err == ""


def test_a_worker_reports_its_errors(worker):
    with pytest.raises(stations.Failure, match="float99") as caught:
        stations.answers([worker(PLACE, TINY, "fairseq", "float99").made])
    assert caught.value.reason.startswith("AttributeError: module 'torch' has no attr")


def test_a_process_that_dies_is_a_failure(worker):
    """As by the system, for want of memory."""
    with pytest.raises(stations.Failure, match="the process has died, as when the sys"):
        stations.answers([worker("os:_exit", 3).made])


def options(*words):
    return benchmark.parser().parse_args(["--output", "out", *words])


def test_the_headline_is_what_is_measured_unasked():
    assert [*measuring.cases(options())] == ["base-50-25-4"]
    assert len(measuring.cases(options("--grid", "full"))) == 10
    names = {name for name, _ in measuring.systems(options())}
    assert names == set(SYSTEMS) - set(choices.SLOW)


@pytest.mark.parametrize("work", [None, "work/toy"])
def test_a_case_has_the_name_that_makes_it(work):
    words = ["--grid", "full", *(["--work", work] if work else [])]
    models = measuring.models_name(options(*words))
    for case in measuring.grid(options(*words)):
        assert decoding.Case.named(case.name(models), models) == case


def test_cases_are_chosen_by_their_names():
    found = measuring.cases(options("--cases", "base-1-25-4,base-t99-10-2,base-1-25-4"))
    assert found == {
        "base-1-25-4": decoding.Case(1, 25, 4),
        "base-t99-10-2": decoding.Case(None, 10, 2, tokens=99),
    }


ORIGIN = {
    "commit": "a",
    "machine": "a",
    "--rounds": 3,
    "models": {"m.pt": [7, 1]},
}
HEAD = {"command": "one", "commit": "a", "date": "", "machine": "", "versions": ""}


def begun(folder, command="one", **others):
    head = {**HEAD, "command": command, "spec": "", "origin": {**ORIGIN, **others}}
    return results.Record(folder, head)


def test_a_record_is_written_after_every_case_and_continued(tmp_path):
    first = begun(tmp_path)
    first.add("one", [ROW])
    second = begun(tmp_path, command="two")
    assert second.has("one")
    assert not second.has("two")
    second.add("two", [{**ROW, "failed": "no memory"}])
    found = json.loads((tmp_path / "benchmark.json").read_text())
    assert [row["case"] for row in found["decoding"]] == ["one", "two"]
    assert found["command"] == "one; two"
    text = (tmp_path / "benchmark.md").read_text()
    assert "no memory" in text


def test_a_case_in_which_a_system_failed_is_there_unless_retried(tmp_path):
    kept = begun(tmp_path)
    kept.add("one", [{**ROW, "failed": "no memory"}])
    kept.add("two", [ROW])
    assert kept.failed() == ["one"]
    assert kept.has("one")
    assert not kept.has("one", retry=True)
    assert kept.has("two", retry=True)
    kept.add("one", [ROW])
    assert kept.failed() == []
    cases = [row["case"] for row in kept.result["decoding"]]
    assert cases == ["one", "two"]  # in its old place


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"commit": "b"}, "another commit"),
        ({"machine": "b"}, "another machine"),
        ({"--rounds": 5}, "another --rounds"),
        ({"models": {"m.pt": [7, 2]}}, "another m.pt"),
    ],
)
def test_numbers_of_another_origin_are_refused_by_name(tmp_path, other, reason):
    begun(tmp_path).write()
    before = (tmp_path / "benchmark.json").read_bytes()
    with pytest.raises(ValueError, match=f"was measured with {reason}: choose another"):
        begun(tmp_path, **other)
    assert (tmp_path / "benchmark.json").read_bytes() == before


@pytest.mark.parametrize("content", ["{", "[]", '{"decoding": []}'])
def test_a_record_that_cannot_be_continued_is_named(tmp_path, content):
    (tmp_path / "benchmark.json").write_text(content)
    with pytest.raises(ValueError, match=r"benchmark.json must be as it was written"):
        begun(tmp_path)


def rows_of(case, *systems):
    with decoding.stations_of(TINY, list(systems), threads=1) as stations:
        return decoding.run_case(stations, case, rounds=1)


def test_a_system_that_fails_has_its_reason_and_the_others_their_numbers(capsys):
    good, bad = decoding.BASELINE, ("SB-NMT", "float99")
    measured, failed = rows_of(CASE, good, bad)
    assert measured["ratio"] == 1
    assert "ratio" not in failed and "no attribute 'float99'" in failed["failed"]
    assert "Traceback" in capsys.readouterr().err
    table = decoding_table(measured, failed)
    assert "no attribute 'float99'" in table[-1] and "1.00×" in table[-2]


def test_without_the_baseline_there_are_no_ratios(monkeypatch):
    monkeypatch.setattr(decoding, "BASELINE", ("Moses", "float32"))
    failed, measured = rows_of(CASE, decoding.BASELINE, ("fairseq", "float32"))
    assert failed["failed"] == "KeyError: 'Moses'"
    assert measured["sentences/s"] > 0 and "ratio" not in measured
    assert len(decoding_table(failed, measured)) == 4


def test_a_system_that_failed_is_opened_anew_for_the_next_case():
    system = ("fairseq", "float32")
    with decoding.stations_of(TINY, [system], threads=1) as stations:
        stations.begin()
        assert stations.ask(system, "prepare", "no case") == []
        assert stations.ask(system, "measure") == []
        assert "AttributeError" in stations.failed[system]
        (row,) = decoding.run_case(stations, CASE, rounds=1)
        assert row["ratio"] == 1


def command(tmp_path, monkeypatch, *words):
    argv = ["benchmark.py", "--output", str(tmp_path), *words]
    monkeypatch.setattr(sys, "argv", argv)
    benchmark.main()


def test_the_command_is_kept_as_it_can_be_typed(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", "--systems", "fairseq,SB NMT"])
    found = measuring.head(options())["command"]
    assert found == "sbnmt benchmark --systems 'fairseq,SB NMT'"


def test_two_benchmarks_do_not_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(in_use, "PATIENCE", 0)
    monkeypatch.setattr(measuring, "measure", lambda *_: None)
    refused = pytest.raises(ValueError, match=f"--output {tmp_path} must not be in use")
    with in_use.hold(tmp_path, "--output"), refused:
        command(tmp_path, monkeypatch)
    assert not (tmp_path / "benchmark.json").exists()
    command(tmp_path, monkeypatch)
    assert (tmp_path / "benchmark.json").exists()


def two_systems(monkeypatch):
    pair = [("fairseq", "float32"), ("SB-NMT", "float32")]
    monkeypatch.setattr(measuring, "systems", lambda args: pair)


def test_the_command_writes_table_json_and_plot(tmp_path, monkeypatch, capsys):
    """Two systems, each in a process of its own."""
    monkeypatch.setattr(choices, "LENGTHS", (3, 5))
    monkeypatch.setattr(choices, "BEAMS", ())
    monkeypatch.setattr(choices, "BATCHES", ())
    two_systems(monkeypatch)
    words = "--size tiny --vocabulary 50 --rounds 1 --threads 1 --max-tokens 30"
    words += " --grid full"
    command(tmp_path, monkeypatch, *words.split())
    found = json.loads((tmp_path / "benchmark.json").read_text())
    cases = {(r["batch"], r["length"]) for r in found["decoding"]}
    assert cases == {(50, 25), (1, 25), (50, 3), (50, 5)}
    text = (tmp_path / "benchmark.md").read_text()
    said = capsys.readouterr()
    assert text in said.out
    for name in ("tiny-50-25-4", "tiny-t30-25-4", "tiny-50-5-4"):
        assert name in said.err  # the progress names its case
    assert "| SB-NMT" in text and found["commit"] in text
    assert (tmp_path / "benchmark.svg").read_text().startswith("<?xml")


def test_an_interrupted_command_continues(tmp_path, monkeypatch):
    measured = []

    def run_case(stations, case, rounds):
        name = case.name("tiny")
        measured.append(name)
        if measured == ["tiny-50-25-4", "tiny-1-25-4"]:
            raise KeyboardInterrupt
        return [{"system": "x", "dtype": "y", "failed": "z", **vars_of(case)}]

    def vars_of(case):
        names = {"batch": case.batch, "length": case.length, "beam": case.beam}
        return {**names, "max tokens": None}

    monkeypatch.setattr(decoding, "run_case", run_case)
    words = ["--size", "tiny", "--cases"]
    cases = ["tiny-50-25-4", "tiny-1-25-4", "tiny-50-10-4"]
    with pytest.raises(KeyboardInterrupt):
        command(tmp_path, monkeypatch, *words, ",".join(cases))
    found = json.loads((tmp_path / "benchmark.json").read_text())
    assert [row["case"] for row in found["decoding"]] == cases[:1]
    measured[:0] = ["before"]
    command(tmp_path, monkeypatch, *words, ",".join(cases))
    assert measured == ["before", *cases[:2], *cases[1:]]
    found = json.loads((tmp_path / "benchmark.json").read_text())
    assert [row["case"] for row in found["decoding"]] == cases
    with pytest.raises(ValueError, match="was measured with another --rounds"):
        command(tmp_path, monkeypatch, *words, cases[0], "--rounds", "2")


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


@pytest.mark.parametrize("row", ["sb", "sb-shift"])
def test_a_folders_model_of_both_directions_is_found(row, tmp_path):
    both = r"sb/model\.pt or .*sb-shift/model\.pt does not exist"
    with pytest.raises(FileNotFoundError, match=both):
        trained_model(tmp_path, "both")
    path = tmp_path / row / "model.pt"
    path.parent.mkdir()
    path.touch()
    assert trained_model(tmp_path, "both") == path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--systems Moses", "--systems must be of"),
        ("--rounds 0", "--rounds must be ≥ 1"),
        ("--work nowhere", "--work must be a finished recipe's folder"),
        (
            "--cases small-50-25-4",
            "as base-50-25-4, or with --work base-50-test-4, but is small-50-25-4",
        ),
        ("--cases base-50-test-4", "length in base-50-test-4 must be test with --work"),
        ("--cases training-1", "must be base-BATCH-LENGTH-BEAM"),
    ],
)
def test_wrong_options_are_named(tmp_path, monkeypatch, words, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        command(tmp_path, monkeypatch, *words.split())
    assert list(tmp_path.iterdir()) == []


def test_a_size_is_one_of_those_that_there_are(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        command(tmp_path, monkeypatch, "--size", "huge")
    assert "argument --size: invalid choice: 'huge'" in capsys.readouterr().err


def test_narrow_numbers_are_compared_with_wide_ones():
    assert decoding.share_of_same(list("abce"), list("abcd")) == 0.75


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
    header = decoding_table(row)[0]
    assert "tok. BLEU" not in header and "steps" not in header
    assert "steps" in decoding_table({**row, "steps": 26})[0]
