"""sbnmt compare, and the seeds of a table: rows and beams against each other."""

import json
import statistics

import in_process
import pytest
from comparing import LINES, RIGHT, answers, bleu, p_of_seeds
from steps import call

from sbnmt_plugin.tools.commands import compare
from sbnmt_plugin.tools.origin import sha256_of
from sbnmt_plugin.tools.phonemes import WordErrorRate
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.stages import row_records
from sbnmt_plugin.tools.recipes.work_folder import ModelRecord
from sbnmt_plugin.tools.results import comparison
from sbnmt_plugin.tools.results.sweep import Setting
from sbnmt_plugin.tools.results.table import seeds_table
from sbnmt_plugin.tools.text import write_lines

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


def p_against(row, rival, *seeds):
    """Return p of the rows of :data:`ROWS` by seeds that both have."""
    names = list(ROWS)

    def run(name, seed):
        whole = name if seed == 1 else f"{name}@{seed}"
        return answers(names.index(whole), ROWS[whole])

    return p_of_seeds(*([run(name, seed) for seed in seeds] for name in (row, rival)))


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
    assert sb["p"]["transformer-pl"] == p_against("sb", "transformer-pl", 1, 2)
    assert sb["p"]["sb-lambda0"] == p_against("sb", "sb-lambda0", 1, 3)
    assert found[1]["p"] == {}
    lines = seeds_table({"rows": rows, "seeds": found})
    assert "p: <transformer-pl>" in lines[1] and "p: <sb-lambda0>" in lines[1]
    assert f"| {sb['mean']:.2f} ± {sb['deviation']:.2f} |" in lines[-1]


def test_a_row_of_three_triples_is_compared_with_its_twin_on_them(tmp_path):
    names = ["sb-noise-lambda0", "sb-noise-lambda0+rescored", "sb-reader"]
    rates = {name + seed: 0.2 for name in names for seed in ("", "@2")}
    *_, ours = comparison.of_several_seeds(tmp_path, *laid_out(tmp_path, rates))
    assert (ours["name"], list(ours["p"])) == (names[2], names[:2])


def test_one_seed_of_each_says_nothing_together(tmp_path):
    settings, rows = laid_out(tmp_path)
    single = [row for row in rows if row["seed"] == 1]
    assert comparison.of_several_seeds(tmp_path, settings, single) == []
    assert seeds_table({"rows": single, "seeds": []}) == seeds_table({}) == []


def evaluated(tmp_path, rates=ROWS):
    """A work folder as the driver leaves it."""
    settings, rows = laid_out(tmp_path, rates)
    (tmp_path / "recipe.json").write_text(json.dumps(settings), "utf-8")
    for row in rows:
        score = {"tokenised BLEU": {"score": row["tokenised BLEU"]}}
        path = tmp_path / "results" / f"{row['name']}.json"
        path.write_text(json.dumps(score), "utf-8")
    return rows


@pytest.fixture
def compared(capsys):
    """Run sbnmt compare; return the cells of its table, the first row its head."""

    def run(folder, *names, of="--work"):
        call(compare, of, folder, *names)
        lines = capsys.readouterr().out.splitlines()
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
        return [cells[0], *cells[2:]]

    return run


def test_rows_are_compared_by_the_seeds_that_both_have(tmp_path, compared):
    scores = {row["name"]: row["tokenised BLEU"] for row in evaluated(tmp_path)}
    names = ["transformer-pl", "sb-lambda0", "teacher-l2r"]
    head, *cells = compared(tmp_path, "sb", *names)
    assert "sb against" in head and "tok. BLEU" in head
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
    p = p_against("sb", "sb-lambda0", 1, 3)
    assert cells[1][7] == f"{p:.3f}"


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
        (("sb-lambda0", "sb-shift"), r"must share a seed.*\[1, 3\] and \[2\]"),
    ],
)
def test_what_cannot_be_compared_is_refused(names, message, tmp_path, compared):
    evaluated(tmp_path, {**ROWS, "sb-shift@2": 0.2})
    with pytest.raises((ValueError, OSError), match=message):
        compared(tmp_path, *names)


def test_seeds_of_different_trainings_are_not_pooled(tmp_path, compared):
    evaluated(tmp_path)
    settings = json.loads((tmp_path / "recipe.json").read_text())
    for seed in 1, 2:
        row = Row("sb", seed)
        (options,) = row_records(settings, row)
        ModelRecord(tmp_path / row.name, options).begin(print)
    compared(tmp_path, "sb", "transformer-pl")
    path = tmp_path / "sb@2" / "options.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"--lr": 7}))
    with pytest.raises(ValueError, match=r"sb@2 was begun .* \(--lr\)"):
        compared(tmp_path, "sb", "transformer-pl")


def test_rows_of_two_runs_are_compared(tmp_path, compared):
    """As if they stood in one folder, a row with its namesake, too."""
    evaluated(tmp_path / "all")
    together = compared(tmp_path / "all", "sb", "transformer-pl")
    for folder in ("ours", "theirs"):
        evaluated(tmp_path / folder)
    for kept, folder in ("sb", "ours"), ("transformer-pl", "theirs"):
        for path in (tmp_path / folder / "results").iterdir():
            if path.name.split(".")[0].split("@")[0] != kept:
                path.unlink()
    rival = ("--rival-work", tmp_path / "theirs")
    assert compared(tmp_path / "ours", *rival, "sb", "transformer-pl") == together
    with pytest.raises(FileNotFoundError, match=r"transformer-pl\.json must hold"):
        compared(tmp_path / "ours", "sb", "transformer-pl")
    rival = ("--rival-work", tmp_path / "all")
    _, (*_, low_to_high, _) = compared(tmp_path / "ours", *rival, "sb", "sb")
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
def test_rows_are_compared_on_some_sets_alone(sets, tmp_path, compared):
    whole, part = of_sets(tmp_path / "whole"), of_part(tmp_path / "part", sets)
    rows, asked = ("sb", "transformer-pl", "sb-lambda0"), ("--sets", ",".join(sets))
    ours = compared(whole, *rows, *asked)
    assert ours == compared(part, *rows) != compared(whole, *rows)
    rival = ("--rival-work", of_sets(tmp_path / "rival"))
    assert ours == compared(whole, *rival, *rows, *asked)


def test_answers_of_another_length_are_refused(tmp_path, compared):
    work = of_sets(tmp_path / "whole")
    path = work / "results" / "sb-lambda0.tok"
    write_lines(path, path.read_text("utf-8").splitlines()[:-1])
    message = f"lambda0.tok must have {LINES} lines.* but has {LINES - 1}: decode"
    with pytest.raises(ValueError, match=message):
        compared(work, "sb", "sb-lambda0", "--sets", "first")


def test_sets_that_a_run_does_not_have_are_refused(tmp_path, compared):
    work = of_sets(tmp_path / "whole")
    for sets, unknown in ("second,fourth", "fourth"), ("", ""), ("second,", ""):
        with pytest.raises(
            ValueError, match=f"first, second, third, .*has '{unknown}': leave"
        ):
            compared(work, "sb", "sb-lambda0", "--sets", sets)
    evaluated(tmp_path / "one")
    with pytest.raises(ValueError, match=r"some of test, .*has 'second'"):
        compared(tmp_path / "one", "sb", "sb-lambda0", "--sets", "second")
    with pytest.raises(ValueError, match="--sets goes with --work"):
        sets = ("--sets", "first")
        compared(work, "sb/2", "sb/4", *sets, of="--sweep")


def test_a_run_of_another_test_set_is_refused(tmp_path, compared):
    evaluated(tmp_path / "ours")
    evaluated(tmp_path / "theirs")
    (reference,) = (tmp_path / "theirs" / "text").glob("test*")
    reference.write_text(reference.read_text().replace("e", "f", 1))
    rival = ("--rival-work", tmp_path / "theirs")
    with pytest.raises(ValueError, match="is of another test set: give two runs"):
        compared(tmp_path / "ours", *rival, "sb", "sb-lambda0")
    path = tmp_path / "theirs" / "recipe.json"
    settings = json.loads(path.read_text())
    settings["score"]["lowercase"] = True
    path.write_text(json.dumps(settings))
    with pytest.raises(ValueError, match="must be scored as --work is"):
        compared(tmp_path / "ours", *rival, "sb", "sb-lambda0")
    rival = ("--rival-work", tmp_path)
    with pytest.raises(FileNotFoundError, match=f"--rival-work {tmp_path} must be"):
        compared(tmp_path / "ours", *rival, "sb", "sb-lambda0")
    with pytest.raises(ValueError, match="--rival-work goes with --work"):
        compared(tmp_path / "x", *rival, "sb", "sb/4", of="--sweep")


def test_a_folder_of_no_recipe_is_refused(tmp_path, compared):
    with pytest.raises(FileNotFoundError, match="json: give the --work of"):
        compared(tmp_path, "sb", "sb-lambda0")
    (tmp_path / "recipe.json").write_text('{"score": 3}', "utf-8")
    with pytest.raises(ValueError, match=r"recipe.json must be .* but is damaged"):
        compared(tmp_path, "sb", "sb-lambda0")


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


def test_beams_of_a_sweep_are_compared(tmp_path, compared):
    texts = swept(tmp_path)
    names = "sb/2", "sb-lambda0/4", "sb/4"
    sweep = tmp_path / "sweep.json"
    head, first, second = compared(sweep, *names, of="--sweep")
    assert "tok. BLEU" in head
    assert (first[0], first[1], second[0]) == ("sb-lambda0/4", "1, 2", "sb/4")
    ours = [texts["sb", 2], texts["sb@2", 2]]
    p = p_of_seeds(ours, [texts["sb-lambda0", 4], texts["sb-lambda0@2", 4]])
    assert first[7] == f"{p:.3f}"
    scores = [bleu().corpus_score(lines, [RIGHT]).score for lines in ours]
    assert float(first[2]) == pytest.approx(statistics.mean(scores), abs=0.011)
    _, named = compared(sweep, "sb/2", "a@b/4", of="--sweep")
    assert named[:2] == ["a@b/4", "1"]


def test_length_penalties_of_a_sweep_are_compared(tmp_path, compared):
    texts = swept(tmp_path, lenpen=1.5)
    names = "sb/2/1.5", "sb-lambda0/4/1.5"
    _, (_, _, score, *_) = compared(tmp_path / "sweep.json", *names, of="--sweep")
    ours = [texts["sb", 2], texts["sb@2", 2]]
    scores = [bleu().corpus_score(lines, [RIGHT]).score for lines in ours]
    assert float(score) == pytest.approx(statistics.mean(scores), abs=0.011)


def test_a_sweep_of_words_is_compared_by_their_errors(tmp_path, compared):
    texts = swept(tmp_path, phonemes=True)
    names = "sb/2", "sb-lambda0/2"
    head, (*_, p) = compared(tmp_path / "sweep.json", *names, of="--sweep")
    assert "WER, %" in head
    runs = [
        [texts[name + seed, 2] for seed in ("", "@2")] for name in ("sb", "sb-lambda0")
    ]
    assert p == f"{p_of_seeds(*runs, metric=WordErrorRate):.3f}"


def test_what_a_sweep_does_not_have_is_refused(tmp_path, compared):
    sweep = tmp_path / "sweep.json"
    with pytest.raises(FileNotFoundError, match="does not exist: give a file that"):
        compared(sweep, "sb/2", "sb/4", of="--sweep")
    sweep.write_text(
        '{"runs": [{"system": "sb", "beam": 2, "BLEU": 1, "signature": "s"}]}'
    )
    with pytest.raises(FileNotFoundError, match="has nothing that is decoded"):
        compared(sweep, "sb/2", "sb/4", of="--sweep")
    swept(tmp_path)
    with pytest.raises(ValueError, match=r"must be one of a@b/2, .*, not sb/8"):
        compared(sweep, "sb/2", "sb/8", of="--sweep")
    (tmp_path / "sweep.json.runs" / "0-beam-2" / "result.json").write_text("{}")
    with pytest.raises(ValueError, match=r"result.json must be .* but is damaged"):
        compared(sweep, "sb/2", "sb/4", of="--sweep")


def test_what_another_sweep_has_left_beside_is_none_of_it(tmp_path, compared):
    """A second command of the same --output, on another set."""
    swept(tmp_path)
    sweep = tmp_path / "sweep.json"
    found = json.loads(sweep.read_text())
    found["runs"] = [run for run in found["runs"] if run["beam"] == 2]
    sweep.write_text(json.dumps(found))
    with pytest.raises(ValueError, match=r"must be one of a@b/2, .*, not sb/4"):
        compared(sweep, "sb/2", "sb/4", of="--sweep")


def test_a_reference_that_has_changed_since_is_noticed(tmp_path, compared):
    swept(tmp_path)
    write_lines(tmp_path / "gold", RIGHT[::-1])
    with pytest.raises(ValueError, match="gold, which is another text by now"):
        compared(tmp_path / "sweep.json", "sb/2", "sb/4", of="--sweep")
