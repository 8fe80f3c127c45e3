"""The benchmark: that it compares like with like, and counts right."""

import json
import os
import signal
import sys
import threading
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from light_station import LightStation
from torch.utils._python_dispatch import TorchDispatchMode

from sbnmt_plugin import in_use
from sbnmt_plugin.search.penalties import LengthPenalty
from sbnmt_plugin.tools.benchmark import cases, decoding, measuring, results
from sbnmt_plugin.tools.benchmark.cases import Case, grid
from sbnmt_plugin.tools.benchmark.measuring import BASELINE
from sbnmt_plugin.tools.benchmark.models import Spec, trained_model
from sbnmt_plugin.tools.benchmark.stations import DIED, Stations
from sbnmt_plugin.tools.benchmark.systems import CONVERTED, SYSTEMS
from sbnmt_plugin.tools.commands import benchmark

TINY = Spec(size="tiny", vocabulary=50)
MAKE = partial(decoding.Station, TINY)
CASE = Case(batch=3, length=6, beam=4)
ROW = {"system": "x", "dtype": "float32", **Case(1).row}


@pytest.fixture(scope="module")
def held():
    return {name: MAKE(name, "float32") for name in SYSTEMS if name not in CONVERTED}


class Operators(TorchDispatchMode):
    """Counts operators that compute or copy; views cost next to nothing."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += not function.is_view
        return function(*args, **(kwargs or {}))


def counted(station, case):
    """Return the steps of a translation, and operators for each of them."""
    station.prepare(case)
    passes = []
    last = station.system.loaded.model.decoder.layers[-1]  # runs once a step
    hook = last.register_forward_hook(lambda *_: passes.append(1))
    with hook, Operators() as operators:
        station.translate()
    return len(passes), operators.count / len(passes)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        *(("fairseq", 7), ("SB-NMT", 7), ("Transformer in our search", 7)),
        *(("SB-NMT rescored", 8), ("SB-NMT λ=0", 7), ("SB-NMT λ=0 rescored", 8)),
    ],
)
def test_every_search_does_the_same_number_of_steps(held, name, steps):
    """6 tokens and </s>; whoever scores translations passes once more over them."""
    assert counted(held[name], CASE)[0] == steps
    row = held[name].measure()
    assert (row["sentences"], row["tokens"]) == (3, 21)
    assert row["seconds"] > 0 and row["memory"] > 0


def test_a_step_has_few_operators(held):
    """Of a step of two layers, encoder and answers shared out among all steps."""
    for batch in (3, 12):
        assert counted(held["SB-NMT"], Case(batch, length=24))[1] < 150


def test_the_count_of_operators_can_fail(held, monkeypatch):
    """Where every step asks ten times what a length is worth."""
    reachable = LengthPenalty.best_reachable

    def anew(self, total, *lengths):
        for _ in range(10):
            self.worth(torch.full_like(total, 7).to(torch.long))
        return reachable(self, total, *lengths)

    monkeypatch.setattr(LengthPenalty, "best_reachable", anew)
    with pytest.raises(AssertionError):
        test_a_step_has_few_operators(held)


def test_the_same_transformer_gives_the_same_texts(held):
    """In fairseq's search and in ours, lengths being forced."""
    found = []
    for name in ("fairseq", "Transformer in our search"):
        held[name].prepare(CASE)
        found.append(held[name].translate())
    assert found[0] == found[1]


def test_ctranslate2_translates_with_the_same_weights(held):
    """Random weights put two words so close that rounding may decide."""
    pytest.importorskip("ctranslate2")
    converted = MAKE("CTranslate2", "float32")
    task = converted.system.loaded.task = object()
    converted.prepare(CASE)
    held["fairseq"].prepare(CASE)
    texts = converted.translate(), held["fairseq"].translate()
    assert sum(a == b for a, b in zip(*texts)) >= 2
    assert converted.system.loaded.task is task  # which has the test set


@pytest.mark.parametrize("name", CONVERTED[1:])
def test_exported_models_write_as_many_words(name):
    pytest.importorskip("ctranslate2")
    station = MAKE(name, "float32")
    station.prepare(CASE)
    row = station.measure()
    assert (row["sentences"], row["tokens"]) == (3, 21)


def test_ratios_are_taken_round_by_round():
    done = {"sentences": 10, "tokens": 70, "memory": 1.0, "each": [0.5, 0.5]}
    slow, fast = [
        [{**done, "seconds": seconds} for seconds in times]
        for times in ((2.0, 4.0, 3.0), (1.0, 1.0, 3.0))
    ]
    row = measuring.summary(fast, slow)
    assert (row["ratio, least"], row["ratio"], row["ratio, most"]) == (1, 2, 4)
    assert row["sentences/s"] == 10 and row["tokens/s"] == 70
    assert "ms, half" not in row  # batches of five
    assert (row["memory"], row["memory ratio"]) == (1, 1)
    unknown = measuring.summary([{**run, "memory": None} for run in fast], slow)
    assert unknown.keys() == row.keys() - {"memory", "memory ratio"}


def test_one_sentence_at_a_time_has_its_percentiles():
    each = [n / 1000 for n in range(1, 101)]
    run = {"seconds": 5.05, "sentences": 100, "tokens": 700, "memory": 1.0}
    row = measuring.summary([{**run, "each": each}] * 2, None)
    assert "ratio" not in row
    assert row["ms, half"] == pytest.approx(50.5)
    assert row["ms, 95 %"] == pytest.approx(95.5, abs=0.5)
    table = results.by_columns(results.COLUMNS, [{**ROW, **row}])
    assert "ms a sentence, half ≤" in table[0] and "50.5" in table[-1]


def test_memory_of_a_GPU_that_torch_does_not_know_is_left_out():
    known = {d: {n for n in SYSTEMS if decoding.knows_memory(n, d)} for d in cases.LOW}
    assert known == {"cpu": {*SYSTEMS}, "cuda": {*SYSTEMS} - {*CONVERTED}}


def test_the_peak_of_memory_is_forgotten():
    """400 MiB that were used before are not those of the next run."""
    decoding.reset_peak("cpu")
    before = decoding.peak_memory("cpu")
    block = torch.ones(100 * 2**20)
    assert decoding.peak_memory("cpu") > before + 0.3
    del block
    decoding.reset_peak("cpu")
    assert decoding.peak_memory("cpu") < before + 0.3


def test_workers_do_not_interrupt_progress_bars(capfd):
    with Stations(MAKE, [BASELINE], threads=1) as stations:
        stations.begin()
        stations.ask(BASELINE, "prepare", CASE)
        assert stations.ask(BASELINE, "measure")["tokens"] == 21
    assert capfd.readouterr().err == ""


def test_a_worker_that_has_died_is_no_error():
    system = ("os",)
    with Stations(__import__, [system], threads=1) as stations:
        stations.begin()
        assert stations.ask(system, "_exit", 3) is None
        assert stations.failed == {system: DIED}


def test_a_worker_that_ends_itself_ends_no_other():
    system = ("sys",)
    with Stations(__import__, [system], threads=1) as stations:
        stations.begin()
        assert stations.ask(system, "exit", 3) is None
        assert stations.failed == {system: "SystemExit: 3"}


def test_a_signal_to_the_command_is_no_failure_of_a_worker(monkeypatch):
    """SIGTERM raises SystemExit while the command waits for a worker."""
    monkeypatch.setattr("sbnmt_plugin.tools.benchmark.stations.PATIENCE", 0.2)
    system = ("time",)
    before = signal.signal(signal.SIGUSR1, lambda *_: sys.exit(143))
    try:
        with Stations(__import__, [system], threads=1) as stations:
            stations.begin()
            stations.ask(system, "sleep", 0)  # it is there
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            with pytest.raises(SystemExit, match="143"):
                stations.ask(system, "sleep", 9)
            assert not stations.failed
    finally:
        signal.signal(signal.SIGUSR1, before)


def options(*words):
    return benchmark.parser().parse_args(["--output", "out", *words])


def test_the_headline_is_what_is_measured_unasked():
    assert grid("headline", trained=False) == [Case(50, 25, 4), Case(1, 25, 4)]
    assert [len(grid("full", trained)) for trained in (False, True)] == [9, 3]
    names = {name for name, _ in measuring.systems(options())}
    assert names == set(SYSTEMS) - set(cases.SLOW)


@pytest.mark.parametrize("emulated", (False, True))
def test_bfloat16_is_measured_where_the_processor_has_it(monkeypatch, emulated):
    monkeypatch.setattr(measuring, "can_pack", lambda dtype: not emulated)
    wanted = {"float32", "int8"} | (set() if emulated else {"bfloat16"})
    assert {dtype for _, dtype in measuring.systems(options())} == wanted


def test_a_recipes_models_are_measured_as_recipes_decode_and_with_nobodys_options():
    recipes, nobodys = grid("headline", trained=True)
    assert recipes.limits == {"max_len_a": 1.0, "max_len_b": 50}
    assert nobodys.limits == {} and (recipes.alpha, nobodys.alpha) == (0.6, 1.0)
    assert recipes.row["length"] is None and "no options" in nobodys.row["length"]


HEAD = dict.fromkeys(("command", "commit", "machine", "versions", "spec"), "a")
HEAD["models"] = {"m.pt": [7, 1]}


@pytest.mark.parametrize("key", HEAD)
def test_numbers_of_another_origin_are_refused_by_name(tmp_path, key):
    path, rows = tmp_path / "benchmark.json", [{**ROW, "failed": "no memory"}]
    held = {**HEAD, "date": "yesterday", "decoding": rows}
    path.write_text(json.dumps(held))
    assert results.begun(path, {**HEAD, "date": "today"}) == held
    assert "no memory" in results.markdown(held)[-1]
    with pytest.raises(ValueError, match=f"must have the {key} .*: choose anot"):
        results.begun(path, {**HEAD, key: {"m.pt": [7, 2]}})


@pytest.mark.parametrize("content", ["{", "[]", '{"decoding": []}'])
def test_results_that_cannot_be_continued_are_named(tmp_path, content):
    (tmp_path / "benchmark.json").write_text(content)
    with pytest.raises(ValueError, match=r"benchmark.json must be as it was written"):
        results.begun(tmp_path / "benchmark.json", HEAD)


def test_a_system_that_fails_has_its_reason_and_the_others_their_numbers(
    monkeypatch, capsys
):
    """One that failed is opened anew for the next case."""
    bad = "SB-NMT", "float99"
    with Stations(LightStation, [BASELINE, bad], threads=1) as stations:
        stations.begin()
        assert stations.ask(BASELINE, "prepare", "no case") is None
        assert stations.ask(BASELINE, "measure") is None
        assert "AttributeError" in stations.failed[BASELINE]
        assert "Traceback" in capsys.readouterr().err
        rows = measuring.run_case(stations, CASE, rounds=1)
        measured, failed = rows
        assert measured["ratio"] == 1
        assert "ratio" not in failed and "float99" in failed["failed"]
        table = results.by_columns(results.COLUMNS, rows)
        assert "float99" in table[-1] and "1.00×" in table[-2]
        monkeypatch.setattr(measuring, "BASELINE", bad)
        measured, _ = measuring.run_case(stations, CASE, rounds=1)
    assert measured["sentences/s"] > 0 and "ratio" not in measured


def command(tmp_path, monkeypatch, *words):
    argv = ["benchmark.py", "--output", str(tmp_path), *map(str, words)]
    monkeypatch.setattr(sys, "argv", argv)
    benchmark.main()


def test_the_command_is_kept_as_it_can_be_typed(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x", "--systems", "fairseq,SB NMT"])
    found = measuring.head(options(), [])["command"]
    assert found == "sbnmt benchmark --systems 'fairseq,SB NMT'"


def test_two_benchmarks_do_not_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(in_use, "PATIENCE", 0)
    monkeypatch.setattr(measuring, "measure", lambda *_: None)
    refused = pytest.raises(ValueError, match=f"--output {tmp_path} must not be in use")
    with in_use.hold(tmp_path, "--output"), refused:
        command(tmp_path, monkeypatch)
    command(tmp_path, monkeypatch)


def test_the_command_writes_json_and_goes_on_with_it(tmp_path, monkeypatch, capsys):
    """Two systems, each in a process of its own; interrupted after the first case."""
    pair = [("fairseq", "float32"), ("SB-NMT", "float32")]
    monkeypatch.setattr(measuring, "systems", lambda args: pair)
    words = ["--size", "tiny", "--vocabulary", 50, "--rounds", 1, "--threads", 1]
    run, path = measuring.run_case, tmp_path / "benchmark.json"

    def interrupted(stations, case, rounds):
        if case.batch == 1:
            raise KeyboardInterrupt
        return run(stations, case, rounds)

    monkeypatch.setattr(measuring, "run_case", interrupted)
    with pytest.raises(KeyboardInterrupt):
        command(tmp_path, monkeypatch, *words)
    first = json.loads(path.read_text())["decoding"]
    monkeypatch.setattr(measuring, "run_case", run)
    command(tmp_path, monkeypatch, *words)
    found = json.loads(path.read_text())
    assert [row["batch"] for row in found["decoding"]] == [50, 50, 1, 1]
    assert found["decoding"][:2] == first
    printed = capsys.readouterr().out
    assert "| SB-NMT" in printed and found["commit"] in printed


def test_a_folder_has_the_models_of_the_chosen_systems(tmp_path):
    def models(*names):
        given = options("--work", str(tmp_path))
        return [*measuring.head(given, [(name, "int8") for name in names])["models"]]

    for row in "teacher-l2r", "sb-lambda0":
        (tmp_path / row).mkdir()
        (tmp_path / row / "model.pt").touch()
    l2r, alone = (str(p) for p in sorted(tmp_path.glob("*/model.pt"), reverse=True))
    assert models("fairseq", "CTranslate2") == [l2r]
    assert models("fairseq", "SB-NMT λ=0 rescored", "SB-NMT exported") == [l2r, alone]
    with pytest.raises(FileNotFoundError, match="sb-shift"):
        models("fairseq", "SB-NMT")


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
        ("--device cuda", "--device cuda needs a GPU, but torch sees none"),
        ("--work nowhere", "--work must be a finished recipe's folder"),
    ],
)
def test_wrong_options_are_named(tmp_path, monkeypatch, words, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        command(tmp_path, monkeypatch, *words.split())
    assert list(tmp_path.iterdir()) == []


def test_a_test_sets_translations_are_scored():
    lines = ["a b c d", "e f g h", "i j k l", "m n o p"]
    narrow = [*lines[:3], "m n o q"]
    found = measuring.scores(
        {
            ("x", "float32"): (lines, lines),
            ("x", "int8"): (narrow, lines),
            ("y", "z"): None,
        }
    )
    wide, low = found.values()
    assert (wide["BLEU"], low["as in float32"]) == (100, 0.75)
    assert low["BLEU"] < 100 and "tok:none" in low["signature"]


@pytest.mark.parametrize(
    ("text", "joined"), [("ein H@@ und .", "ein Hund ."), ("▁ein ▁H und", "ein Hund")]
)
def test_bleu_is_of_text_without_its_subwords(text, joined):
    words = Dictionary()
    tokens = words.encode_line(text)
    gold = SimpleNamespace(dataset=lambda split: SimpleNamespace(tgt=[tokens]))
    loaded = SimpleNamespace(words=words, task=gold)
    station = SimpleNamespace(
        system=SimpleNamespace(loaded=loaded), found=[(0, tokens.tolist())]
    )
    assert decoding.Station.texts(station) == ([joined], [joined])
