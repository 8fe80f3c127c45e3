"""Several seeds of a row: mean, deviation, and p of all their answers together."""

import random
import statistics

import in_process
import pytest
from sacrebleu.metrics import BLEU

from sbnmt_plugin.tools.phonemes import WordErrorRate
from sbnmt_plugin.tools.recipes import comparison
from sbnmt_plugin.tools.recipes.settings import load_recipe
from sbnmt_plugin.tools.recipes.table import seeds_table
from sbnmt_plugin.tools.significance import bootstrap, of_all_seeds, seeds_together
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
