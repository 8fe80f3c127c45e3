"""Several seeds of a row: mean, deviation, and p of all their answers together."""

import json
import random
import statistics
import sys

import in_process
import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from sbnmt_plugin.tools.commands import compare
from sbnmt_plugin.tools.origin import sha256_of
from sbnmt_plugin.tools.phonemes import WordErrorRate
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.records import ModelRecord
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.stages import row_records
from sbnmt_plugin.tools.results import bootstrap as significance
from sbnmt_plugin.tools.results import comparison
from sbnmt_plugin.tools.results.bootstrap import (
    bootstrap,
    interval,
    of_all_seeds,
    seeds_together,
)
from sbnmt_plugin.tools.results.sweep import Setting
from sbnmt_plugin.tools.results.table import seeds_table
from sbnmt_plugin.tools.text import write_lines

LINES = 120
RIGHT = [f"a{i % 7} b{i % 5} c{i % 11} d{i} e" for i in range(LINES)]


def answers(seed, rate):
    """The references with some words wrong."""
    draw = random.Random(seed)
    return [
        " ".join("x" if draw.random() < rate else word for word in line.split())
        for line in RIGHT
    ]


def bleu():
    return BLEU(tokenize="none", force=True)


def p_of(runs, rivals, metric=bleu):
    systems = {"rival": seeds_together(rivals), "row": seeds_together(runs)}
    found, _ = bootstrap(systems, [RIGHT], "rival", {"it": of_all_seeds(metric())})
    return found["row"]["it"]


@pytest.mark.parametrize(
    "metric", [bleu, BLEU, WordErrorRate], ids=["tokens", "text", "WER"]
)
def test_the_score_of_all_seeds_is_that_of_one_long_text(metric):
    runs = [answers(seed, 0.2) for seed in (1, 2, 3)]
    pooled = of_all_seeds(metric()).corpus_score(seeds_together(runs), [RIGHT])
    whole = metric().corpus_score([line for run in runs for line in run], [RIGHT * 3])
    assert pooled.score == pytest.approx(whole.score, abs=1e-9)
    assert pooled.score != pytest.approx(metric().corpus_score(runs[0], [RIGHT]).score)


def assert_the_same_twice_is_no_more_evidence(p=p_of):
    one, rival = answers(1, 0.2), answers(2, 0.22)
    assert p([one, one], [rival, rival]).p == p([one], [rival]).p


def test_the_same_answers_twice_are_no_more_evidence():
    assert_the_same_twice_is_no_more_evidence()


def test_the_check_of_evidence_can_fail():
    """One behind the other instead, as if the sentences were others."""

    def behind(runs, rivals):
        named = {"rival": rivals, "row": runs}
        systems = {k: [line for run in v for line in run] for k, v in named.items()}
        given = [RIGHT * len(runs)]
        return bootstrap(systems, given, "rival", {"it": bleu()})[0]["row"]["it"]

    with pytest.raises(AssertionError):
        assert_the_same_twice_is_no_more_evidence(behind)


def test_more_seeds_that_agree_are_more_evidence():
    runs = [answers(seed, 0.2) for seed in range(8)]
    rivals = [answers(seed, 0.23) for seed in range(100, 108)]
    assert p_of(runs, rivals).p < 0.05 < p_of(runs[:1], rivals[:1]).p


def test_runs_of_other_lengths_are_no_seeds():
    with pytest.raises(ValueError, match="shorter"):
        seeds_together([RIGHT, RIGHT[1:]])


ROWS = {
    "transformer-pl": 0.3,
    "transformer-pl@2": 0.31,
    "sb-lambda0": 0.22,
    "sb-lambda0@3": 0.25,
    "sb": 0.2,
    "sb@2": 0.21,
    "sb@3": 0.19,
    "teacher-l2r": 0.4,
}


def laid_out(tmp_path, rates=ROWS):
    """A work folder's rows, and its recipe."""
    settings = load_recipe(in_process.write_recipe(tmp_path / "recipe"), False)
    (tmp_path / "text").mkdir()
    (tmp_path / "results").mkdir()
    write_lines(tmp_path / "text" / "test.tgt", RIGHT)
    rows = []
    for place, (name, rate) in enumerate(rates.items()):
        lines = answers(place, rate)
        write_lines(tmp_path / "results" / f"{name}.tok", lines)
        _, _, seed = name.partition("@")
        score = round(bleu().corpus_score(lines, [RIGHT]).score, 2)
        title = f"<{name}>" if not seed else f"<{name[:-2]}>, seed {seed}"
        row = {"name": name, "title": title, "seed": int(seed or 1)}
        rows.append({**row, "tokenised BLEU": score})
    return settings, rows


def test_what_seeds_say_together(tmp_path):
    settings, rows = laid_out(tmp_path)
    found = comparison.of_several_seeds(tmp_path, settings, rows)
    assert [row["name"] for row in found] == ["transformer-pl", "sb-lambda0", "sb"]
    sb = found[-1]
    scores = [row["tokenised BLEU"] for row in rows if row["name"].startswith("sb@")]
    scores.append(next(row["tokenised BLEU"] for row in rows if row["name"] == "sb"))
    assert (sb["title"], sb["seeds"]) == ("<sb>", [1, 2, 3])
    assert sb["mean"] == pytest.approx(statistics.mean(scores), abs=0.005)
    assert sb["deviation"] == pytest.approx(statistics.stdev(scores), abs=0.005)
    # of the seeds that both have; λ = 0 and the Transformer have seed 1 alone in common
    names = list(ROWS)

    def run(name):
        return answers(names.index(name), ROWS[name])

    against = p_of(
        [run("sb"), run("sb@2")], [run("transformer-pl"), run("transformer-pl@2")]
    )
    assert sb["p"]["transformer-pl"] == against.p
    twin = p_of([run("sb"), run("sb@3")], [run("sb-lambda0"), run("sb-lambda0@3")])
    assert sb["p"]["sb-lambda0"] == twin.p
    assert found[1]["p"] == {}
    lines = seeds_table({"rows": rows, "seeds": found})
    assert "p: <transformer-pl>" in lines[1] and "p: <sb-lambda0>" in lines[1]
    assert f"| {sb['mean']:.2f} ± {sb['deviation']:.2f} |" in lines[-1]


def test_a_row_of_three_triples_is_compared_with_its_twin_on_them(tmp_path):
    names = ["sb-noise-lambda0", "sb-noise-lambda0+rescored", "sb-noise-shift"]
    rates = {name + seed: 0.2 for name in names for seed in ("", "@2")}
    *_, ours = comparison.of_several_seeds(tmp_path, *laid_out(tmp_path, rates))
    assert (ours["name"], list(ours["p"])) == (names[2], names[:2])


def test_one_seed_of_each_says_nothing_together(tmp_path):
    settings, rows = laid_out(tmp_path)
    single = [row for row in rows if row["seed"] == 1]
    assert comparison.of_several_seeds(tmp_path, settings, single) == []
    assert seeds_table({"rows": single, "seeds": []}) == seeds_table({}) == []


def slow_interval(texts, baseline, samples, draw):
    """The texts of each sample written out, scored by the metric alone."""

    def scored(runs, places):
        lines = [run[i] for run in runs for i in places]
        right = [RIGHT[i] for _ in runs for i in places]
        return bleu().corpus_score(lines, [right]).score

    found = [
        scored(texts, places) - scored(baseline, places)
        for places in draw.choice(LINES, size=(samples, LINES), replace=True)
    ]
    return np.quantile(found, [0.025, 0.975])


def fast_interval(texts, baseline):
    metric = of_all_seeds(bleu())
    return interval(seeds_together(texts), seeds_together(baseline), [RIGHT], metric)


def assert_interval(monkeypatch, draw):
    monkeypatch.setattr(significance, "SAMPLES", 60)
    texts = [answers(seed, 0.2) for seed in (1, 2)]
    baseline = [answers(seed, 0.25) for seed in (3, 4)]
    slow = slow_interval(texts, baseline, 60, draw)
    assert fast_interval(texts, baseline) == pytest.approx(slow, abs=1e-4)
    assert slow[0] < slow[1]


def test_the_interval_is_that_of_samples_written_out(monkeypatch):
    """Of sacreBLEU's samples, so that it goes with its p."""
    assert_interval(monkeypatch, np.random.default_rng(12345))


def test_the_check_of_intervals_can_fail(monkeypatch):
    with pytest.raises(AssertionError):
        assert_interval(monkeypatch, np.random.default_rng(12346))


def test_an_interval_is_of_pairs():
    """The same mistakes in both leave nothing to chance."""
    runs = [answers(1, 0.3)]
    assert fast_interval(runs, runs) == (0.0, 0.0)
    low, high = fast_interval(runs, [answers(2, 0.3)])
    assert low < -1 and high > 1


def test_pairs_stay_pairs_whatever_the_seed(monkeypatch):
    """sacreBLEU's own `none` draws anew for each text."""
    runs = [answers(1, 0.3)]
    monkeypatch.setenv("SACREBLEU_SEED", "none")
    assert fast_interval(runs, runs) == (0.0, 0.0)
    same = {"a": runs[0], "b": list(runs[0]), "c": answers(2, 0.9)}
    found, _ = significance.bootstrap(same, [RIGHT], "a", {"BLEU": bleu()}, 60)
    assert found["b"]["BLEU"].p == 1.0 > found["c"]["BLEU"].p


def evaluated(tmp_path, rates=ROWS):
    """A work folder as the driver leaves it."""
    settings, rows = laid_out(tmp_path, rates)
    (tmp_path / "recipe.json").write_text(json.dumps(settings), "utf-8")
    for row in rows:
        score = {"tokenised BLEU": {"score": row["tokenised BLEU"]}}
        path = tmp_path / "results" / f"{row['name']}.json"
        path.write_text(json.dumps(score), "utf-8")
    return rows


def compared(monkeypatch, tmp_path, *names, of="--work"):
    words = ["sbnmt compare", of, str(tmp_path), *names]
    monkeypatch.setattr(sys, "argv", words)
    compare.main()


def cells_of(text):
    """Of the printed table: its rows without the head, a list each."""
    lines = text.splitlines()[2:]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_rows_are_compared_by_the_seeds_that_both_have(tmp_path, monkeypatch, capsys):
    scores = {row["name"]: row["tokenised BLEU"] for row in evaluated(tmp_path)}
    compared(monkeypatch, tmp_path, "sb", "transformer-pl", "sb-lambda0", "teacher-l2r")
    printed = capsys.readouterr().out
    cells, head = cells_of(printed), printed.splitlines()[0]
    assert "sb against" in head and "tok. BLEU" in head
    names = ["transformer-pl", "sb-lambda0", "teacher-l2r"]
    assert [row[0] for row in cells] == names
    assert [row[1] for row in cells] == ["1, 2", "1, 3", "1"]
    first = cells[0]
    ours = [scores["sb"], scores["sb@2"]]
    theirs = [scores["transformer-pl"], scores["transformer-pl@2"]]
    each = [a - b for a, b in zip(ours, theirs)]
    assert float(first[2]) == pytest.approx(statistics.mean(ours), abs=0.006)
    assert float(first[3]) == pytest.approx(statistics.mean(theirs), abs=0.006)
    assert first[4] == compare.signed(statistics.mean(each))
    assert first[5] == ", ".join(map(compare.signed, each))
    low, high = (float(x.replace("+", "")) for x in first[6].split(" to "))
    assert 0 < low < statistics.mean(each) < high
    names = list(ROWS)

    def run(name):
        return answers(names.index(name), ROWS[name])

    expected = p_of([run("sb"), run("sb@3")], [run("sb-lambda0"), run("sb-lambda0@3")])
    assert cells[1][7] == f"{expected.p:.3f}"


def test_a_difference_has_a_sign_unless_it_rounds_to_nothing():
    signs = [compare.signed(value) for value in (1.234, -0.006, 0.004, -0.004, 0)]
    assert signs == ["+ 1.23", "− 0.01", "0.00", "0.00", "0.00"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("sb", "sb"), "sb must not be compared with itself"),
        (("sb@2", "sb"), "a row without a seed.*leave out @2"),
        (("sb", "sb-six"), "sb-six.json must hold the results of a row"),
        (("sb", "none"), "but has 'none'"),
        (("sb", "teacher-back"), "must translate into the target"),
        (("sb-lambda0", "sb-dropped"), r"must share a seed.*\[1, 3\] and \[2\]"),
    ],
)
def test_what_cannot_be_compared_is_refused(names, message, tmp_path, monkeypatch):
    evaluated(tmp_path, {**ROWS, "sb-dropped@2": 0.2})
    with pytest.raises((ValueError, OSError), match=message):
        compared(monkeypatch, tmp_path, *names)


def test_seeds_of_different_trainings_are_not_pooled(tmp_path, monkeypatch):
    evaluated(tmp_path)
    settings = json.loads((tmp_path / "recipe.json").read_text())
    for seed in 1, 2:
        row = Row("sb", seed)
        (options,) = row_records(settings, row)
        ModelRecord(tmp_path / row.name, options).begin(print)
    compared(monkeypatch, tmp_path, "sb", "transformer-pl")
    path = tmp_path / "sb@2" / "options.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"--lr": 7}))
    with pytest.raises(ValueError, match=r"sb@2 was begun .* \(--lr\)"):
        compared(monkeypatch, tmp_path, "sb", "transformer-pl")


def test_rows_of_two_runs_are_compared(tmp_path, monkeypatch, capsys):
    """As if they stood in one folder, a row with its namesake, too."""
    evaluated(tmp_path / "all")
    compared(monkeypatch, tmp_path / "all", "sb", "transformer-pl")
    together = cells_of(capsys.readouterr().out)
    for folder in ("ours", "theirs"):
        evaluated(tmp_path / folder)
    for kept, folder in ("sb", "ours"), ("transformer-pl", "theirs"):
        for path in (tmp_path / folder / "results").iterdir():
            if path.name.split(".")[0].split("@")[0] != kept:
                path.unlink()
    rival = ("--rival-work", str(tmp_path / "theirs"))
    compared(monkeypatch, tmp_path / "ours", *rival, "sb", "transformer-pl")
    assert cells_of(capsys.readouterr().out) == together
    with pytest.raises(FileNotFoundError, match=r"transformer-pl\.json must hold"):
        compared(monkeypatch, tmp_path / "ours", "sb", "transformer-pl")
    rival = ("--rival-work", str(tmp_path / "all"))
    compared(monkeypatch, tmp_path / "ours", *rival, "sb", "sb")
    ((*_, low_to_high, _),) = cells_of(capsys.readouterr().out)
    assert low_to_high == "0.00 to 0.00"


SETS = {"first": 30, "second": 50, "third": LINES - 80}


def of_sets(tmp_path):
    """A work folder whose test set consists of three."""
    evaluated(tmp_path)
    lines = [f"{name}\t{size}" for name, size in SETS.items()]
    write_lines(tmp_path / "text" / "test.sets", lines)
    return tmp_path


def of_part(folder, sets):
    """The run whose test set has no other sentences than those of the sets."""
    evaluated(folder)
    starts = dict(zip(SETS, (0, 30, 80)))
    kept = [i for s in SETS if s in sets for i in range(starts[s], starts[s] + SETS[s])]
    for path in folder / "text" / "test.tgt", *(folder / "results").glob("*.tok"):
        lines = path.read_text("utf-8").splitlines()
        write_lines(path, [lines[i] for i in kept])
    right = [RIGHT[i] for i in kept]
    for place, (row, rate) in enumerate(ROWS.items()):
        lines = [answers(place, rate)[i] for i in kept]
        score = {"score": bleu().corpus_score(lines, [right]).score}
        path = folder / "results" / f"{row}.json"
        path.write_text(json.dumps({"tokenised BLEU": score}), "utf-8")
    return folder


@pytest.mark.parametrize("sets", [["first"], ["third", "second"], ["first", "third"]])
def test_rows_are_compared_on_some_sets_alone(sets, tmp_path, monkeypatch, capsys):
    whole, part = of_sets(tmp_path / "whole"), of_part(tmp_path / "part", sets)
    rows, asked = ("sb", "transformer-pl", "sb-lambda0"), ("--sets", ",".join(sets))
    compared(monkeypatch, whole, *rows, *asked)
    ours = cells_of(capsys.readouterr().out)
    compared(monkeypatch, part, *rows)
    assert ours == cells_of(capsys.readouterr().out)
    compared(monkeypatch, whole, *rows)
    assert ours != cells_of(capsys.readouterr().out)
    rival = ("--rival-work", str(of_sets(tmp_path / "rival")))
    compared(monkeypatch, whole, *rival, *rows, *asked)
    assert ours == cells_of(capsys.readouterr().out)


def test_answers_of_another_length_are_refused(tmp_path, monkeypatch):
    work = of_sets(tmp_path / "whole")
    path = work / "results" / "sb-lambda0.tok"
    write_lines(path, path.read_text("utf-8").splitlines()[:-1])
    message = f"lambda0.tok must have {LINES} lines.* but has {LINES - 1}: decode"
    with pytest.raises(ValueError, match=message):
        compared(monkeypatch, work, "sb", "sb-lambda0", "--sets", "first")


def test_sets_that_a_run_does_not_have_are_refused(tmp_path, monkeypatch):
    work = of_sets(tmp_path / "whole")
    for sets, unknown in ("second,fourth", "fourth"), ("", ""), ("second,", ""):
        with pytest.raises(
            ValueError, match=f"first, second, third, .*has '{unknown}': leave"
        ):
            compared(monkeypatch, work, "sb", "sb-lambda0", "--sets", sets)
    evaluated(tmp_path / "one")
    with pytest.raises(ValueError, match=r"some of test, .*has 'second'"):
        compared(monkeypatch, tmp_path / "one", "sb", "sb-lambda0", "--sets", "second")
    with pytest.raises(ValueError, match="--sets goes with --work"):
        sets = ("--sets", "first")
        compared(monkeypatch, work, "sb/2", "sb/4", *sets, of="--sweep")


def test_a_run_of_another_test_set_is_refused(tmp_path, monkeypatch):
    evaluated(tmp_path / "ours")
    evaluated(tmp_path / "theirs")
    (reference,) = (tmp_path / "theirs" / "text").glob("test*")
    reference.write_text(reference.read_text().replace("e", "f", 1))
    rival = ("--rival-work", str(tmp_path / "theirs"))
    with pytest.raises(ValueError, match="is of another test set: give two runs"):
        compared(monkeypatch, tmp_path / "ours", *rival, "sb", "sb-lambda0")
    path = tmp_path / "theirs" / "recipe.json"
    settings = json.loads(path.read_text())
    settings["score"]["lowercase"] = True
    path.write_text(json.dumps(settings))
    with pytest.raises(ValueError, match="must be scored as --work is"):
        compared(monkeypatch, tmp_path / "ours", *rival, "sb", "sb-lambda0")
    rival = ("--rival-work", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"--rival-work {tmp_path} must be"):
        compared(monkeypatch, tmp_path / "ours", *rival, "sb", "sb-lambda0")
    with pytest.raises(ValueError, match="--rival-work goes with --work"):
        compared(monkeypatch, tmp_path / "x", *rival, "sb", "sb/4", of="--sweep")


def test_a_folder_of_no_recipe_is_refused(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="json: give the --work of"):
        compared(monkeypatch, tmp_path, "sb", "sb-lambda0")
    (tmp_path / "recipe.json").write_text('{"score": 3}', "utf-8")
    with pytest.raises(ValueError, match=r"recipe.json must be .* but is damaged"):
        compared(monkeypatch, tmp_path, "sb", "sb-lambda0")


def swept(tmp_path, phonemes=False, lenpen=None):
    """What a sweep leaves: its file, and of each run fairseq-generate's output."""
    write_lines(tmp_path / "gold", RIGHT)
    rates = {"sb": 0.2, "sb@2": 0.22, "sb-lambda0": 0.25, "sb-lambda0@2": 0.24}
    rates["a@b"] = 0.3
    texts, runs = {}, []
    for place, (name, rate) in enumerate(rates.items()):
        for beam in (2, 4):
            lines = texts[name, beam] = answers(10 * place + beam, rate)
            setting = Setting(beam, lenpen)
            folder = tmp_path / "sweep.json.runs" / setting.folder(place)
            folder.mkdir(parents=True)
            said = [f"H-{i}\t-0.5\t{line}" for i, line in enumerate(lines)]
            write_lines(folder / "generate-valid.txt", said[::-1])
            job = {"name": name, "references": [str(tmp_path / "gold")]}
            job |= {"reference sha256": sha256_of(RIGHT)}
            job |= {"options": ["data", "--gen-subset", "valid"]}
            job |= {"phonemes": True} if phonemes else {}
            score = bleu().corpus_score(lines, [RIGHT]).score
            wrong = WordErrorRate().corpus_score(lines, [RIGHT]).score
            found = {"BLEU": round(score, 2), "WER": round(wrong, 2), "signature": "s"}
            result = {"job": job, **found}
            (folder / "result.json").write_text(json.dumps(result), "utf-8")
            runs.append({"system": name, **setting.as_json, **found})
    (tmp_path / "sweep.json").write_text(json.dumps({"runs": runs}), "utf-8")
    return texts


def test_beams_of_a_sweep_are_compared(tmp_path, monkeypatch, capsys):
    texts = swept(tmp_path)
    names = "sb/2", "sb-lambda0/4", "sb/4"
    compared(monkeypatch, tmp_path / "sweep.json", *names, of="--sweep")
    printed = capsys.readouterr().out
    first, second = cells_of(printed)
    assert "tok. BLEU" in printed.splitlines()[0]
    assert (first[0], first[1], second[0]) == ("sb-lambda0/4", "1, 2", "sb/4")
    ours = [texts["sb", 2], texts["sb@2", 2]]
    expected = p_of(ours, [texts["sb-lambda0", 4], texts["sb-lambda0@2", 4]])
    assert first[7] == f"{expected.p:.3f}"
    scores = [bleu().corpus_score(lines, [RIGHT]).score for lines in ours]
    assert float(first[2]) == pytest.approx(statistics.mean(scores), abs=0.011)
    compared(monkeypatch, tmp_path / "sweep.json", "sb/2", "a@b/4", of="--sweep")
    ((*named, _),) = cells_of(capsys.readouterr().out)
    assert named[:2] == ["a@b/4", "1"]


def test_length_penalties_of_a_sweep_are_compared(tmp_path, monkeypatch, capsys):
    texts = swept(tmp_path, lenpen=1.5)
    names = "sb/2/1.5", "sb-lambda0/4/1.5"
    compared(monkeypatch, tmp_path / "sweep.json", *names, of="--sweep")
    ((_, _, score, *_),) = cells_of(capsys.readouterr().out)
    ours = [texts["sb", 2], texts["sb@2", 2]]
    scores = [bleu().corpus_score(lines, [RIGHT]).score for lines in ours]
    assert float(score) == pytest.approx(statistics.mean(scores), abs=0.011)


def test_a_sweep_of_words_is_compared_by_their_errors(tmp_path, monkeypatch, capsys):
    texts = swept(tmp_path, phonemes=True)
    names = "sb/2", "sb-lambda0/2"
    compared(monkeypatch, tmp_path / "sweep.json", *names, of="--sweep")
    printed = capsys.readouterr().out
    assert "WER, %" in printed.splitlines()[0]
    runs = [
        [texts[name + seed, 2] for seed in ("", "@2")] for name in ("sb", "sb-lambda0")
    ]
    ((*_, p),) = cells_of(printed)
    assert p == f"{p_of(*runs, metric=WordErrorRate).p:.3f}"


def test_what_a_sweep_does_not_have_is_refused(tmp_path, monkeypatch):
    sweep = tmp_path / "sweep.json"
    with pytest.raises(FileNotFoundError, match="does not exist: give a file that"):
        compared(monkeypatch, sweep, "sb/2", "sb/4", of="--sweep")
    sweep.write_text(
        '{"runs": [{"system": "sb", "beam": 2, "BLEU": 1, "signature": "s"}]}'
    )
    with pytest.raises(FileNotFoundError, match="has nothing that is decoded"):
        compared(monkeypatch, sweep, "sb/2", "sb/4", of="--sweep")
    swept(tmp_path)
    with pytest.raises(ValueError, match=r"must be one of a@b/2, .*, not sb/8"):
        compared(monkeypatch, sweep, "sb/2", "sb/8", of="--sweep")
    (tmp_path / "sweep.json.runs" / "0-beam-2" / "result.json").write_text("{}")
    with pytest.raises(ValueError, match=r"result.json must be .* but is damaged"):
        compared(monkeypatch, sweep, "sb/2", "sb/4", of="--sweep")


def test_what_another_sweep_has_left_beside_is_none_of_it(tmp_path, monkeypatch):
    """A second command of the same --output, on another set."""
    swept(tmp_path)
    sweep = tmp_path / "sweep.json"
    found = json.loads(sweep.read_text())
    found["runs"] = [run for run in found["runs"] if run["beam"] == 2]
    sweep.write_text(json.dumps(found))
    with pytest.raises(ValueError, match=r"must be one of a@b/2, .*, not sb/4"):
        compared(monkeypatch, sweep, "sb/2", "sb/4", of="--sweep")


def test_a_reference_that_has_changed_since_is_noticed(tmp_path, monkeypatch):
    swept(tmp_path)
    write_lines(tmp_path / "gold", RIGHT[::-1])
    with pytest.raises(ValueError, match="gold, which is another text by now"):
        compared(monkeypatch, tmp_path / "sweep.json", "sb/2", "sb/4", of="--sweep")
