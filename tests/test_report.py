"""The report's numbers, by hand and against sacreBLEU; its command and its refusals."""

import json
from types import SimpleNamespace

import pytest
import sacrebleu
import torch
from commands import ROOT
from sacrebleu.metrics import BLEU
from steps import call, put

from sbnmt_plugin.tools.commands import report
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.results import bootstrap as significance

pytest.importorskip("matplotlib", reason="the extra [report] is not installed")

from sbnmt_plugin.tools.report import (
    accuracy,
    alignment,
    content,
    files,
    inputs,
    lengths,
    logs,
    page,
    records,
    scores,
    sentences,
    speeds,
    training,
    winners,
)
from sbnmt_plugin.tools.text import read_lines
from sbnmt_plugin.tools.translations import read_generate_log

# ------------------------------------------- each check, and one that must fail it


def words(*lines):
    return [line.split() for line in lines]


def check_accuracy(measure):
    outputs, gold = words("a b c d e", "x", ""), words("a c b d e", "x y", "z")
    # first 2: a = a, b ≠ c; x = x, – ≠ y; – ≠ z: 2 of 2 + 2 + 1
    assert measure(outputs, [gold], 2) == pytest.approx(100 * 2 / 5)
    # last 2: e = e, d = d; x ≠ y, – ≠ x; – ≠ z
    assert measure(outputs, [gold], 2, last=True) == pytest.approx(100 * 2 / 5)
    # first 3 in any order: a b c all there, x, nothing
    assert measure(outputs, [gold], 3, in_place=False) == pytest.approx(100 * 4 / 6)
    # a superfluous token counts as wrong
    assert measure(words("x y"), [words("x")], 4) == pytest.approx(50)
    # the reference that fits best, sentence by sentence
    both = [words("a b", "p q"), words("a a", "r s")]
    assert measure(words("a a", "p q"), both, 2) == pytest.approx(100)


def check_buckets(group):
    found = group([1, 5, 6, 10, 11, 40], [5, 10])
    assert [(b.name, b.places) for b in found] == [
        ("1–5", (0, 1)),
        ("6–10", (2, 3)),
        ("≥ 11", (4, 5)),
    ]


def check_grow_diag(join):
    # both have 0-0 and 2-2; 1-1 is a neighbour of one with two words alone; 3-0 is not
    # a neighbour of any, 2-1 would link two words that are linked by then
    forward, reverse = {(0, 0), (2, 2), (1, 1), (3, 0)}, {(0, 0), (2, 2), (2, 1)}
    assert join(forward, reverse) == {(0, 0), (1, 1), (2, 2)}


def check_under(count):
    assert count({(0, 0)}, {(0, 0), (1, 1), (1, 2)}) == {1}
    assert count({(0, 0), (1, 0)}, {(1, 1)}) == set()


def check_over(count):
    output, gold = ["the", "the", "Cat", "cat"], ["the", "cat", "cat"]
    links = {(0, 0), (0, 1), (1, 2), (1, 3)}
    # "the" is there twice for once; "cat" as often as in the reference
    assert count(links, {(0, 0), (1, 1), (1, 2)}, output, gold) == {0}


def races():
    def one(winner, left, right, a=-1.0, b=-2.0):
        text = {"l2r": left, "r2l": right}
        score = {"l2r": a, "r2l": None if right is None else b}
        return records.Race(winner, text, score)

    return [
        one("l2r", "the cat sat down", "a dog ran up"),
        one("r2l", "he ran home now", "he walked home now", -3.0, -1.5),
        one("l2r", "yes", "yes", -0.5, -0.75),
        one("l2r", "only one", None),
    ]


GOLD = ["the cat sat down", "he walked home now", "yes", "only one"]


def check_choices(choose):
    found = choose(races(), [GOLD], tokenize="none")
    assert found["the search's choice"] == GOLD
    assert found["always L2R"][1] == "he ran home now"
    assert found["always R2L"][0] == "a dog ran up"
    assert found["always R2L"][3] == "only one"  # R2L never finished
    assert found["the better one (oracle)"] == GOLD


def check_margins(group):
    found = group(races(), 2)
    assert found == [(0.25, 0.25, [2]), (1.0, 1.5, [0, 1])]


def check_parameters(count):
    weight = torch.ones(5, 3)
    state = {
        "encoder.version": torch.ones(1),
        "encoder.embed_tokens.weight": weight,
        "decoder.embed_tokens.weight": weight.clone(),
        "decoder.output_projection.weight": weight + 1,
        "decoder.layer.bias": torch.ones(4),
        "decoder.layer.bias2": torch.ones(4),
    }
    assert count(state) == 15 + 15 + 4 + 4


LOG = """\
2026 | INFO | train_inner | epoch 001:    100 / 493 loss=9, nll_loss_l2r=8.5, ups=2, wps=10.5, num_updates=100, lr=0.1
2026 | INFO | train_inner | epoch 001:    200 / 493 loss=8, nll_loss_l2r=7, ups=4, wps=20, num_updates=200, lr=0.1
2026 | INFO | train_inner | epoch 001:    300 / 493 loss=8, nll_loss_l2r=6, ups=9, wps=30, num_updates=300, lr=0.1
2026 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 7 | nll_loss_r2l 6.5 | bleu 12.34 | num_updates 300
2026 | INFO | train_inner | epoch 001:    200 / 493 loss=8, nll_loss_l2r=7.5, ups=4, wps=20, num_updates=200, lr=0.1
"""  # noqa: E501


def check_train_log(read):
    log = read(LOG.splitlines())
    assert log.series("train_inner", "nll_loss_l2r") == (
        [100, 200, 300],
        [8.5, 7.5, 6],  # continued from an earlier checkpoint: the later value
    )
    assert log.series("valid", "bleu") == ([300], [12.34])
    assert log.speed("ups") == 4


def check_generate_log(read):
    line = "INFO:x:Translated 1,000 sentences (11,443 tokens) in 5.6s ({} sentences/s, "
    found = read([(line + "2 tokens/s)").format(x) for x in ("1.5", "177.34")])
    assert found["sentences/s"] == 177.34 and found["tokens"] == 11443
    assert read(["nothing"]) is None


CHECKS = [
    (
        check_accuracy,
        accuracy.accuracy,
        lambda o, r, n, last=False, in_place=True: accuracy.accuracy(o, r[:1], n),
    ),
    (check_buckets, lengths.buckets, lambda n, u: lengths.buckets(n, [4, 10])),
    (check_grow_diag, alignment.grow_diag, lambda a, b: a | b),
    (check_under, alignment.under_translated, lambda a, b: set()),
    (
        check_over,
        alignment.over_translated,
        lambda o, g, a, b: alignment.over_translated(o, set(), a, b),
    ),
    (
        check_choices,
        winners.choices,
        lambda r, g, tokenize: winners.choices(r, [g[0][::-1]], tokenize=tokenize),
    ),
    (check_margins, winners.margin_groups, lambda r, n: winners.margin_groups(r, 3)),
    (
        check_parameters,
        speeds.count_parameters,
        lambda state: sum(x.numel() for x in state.values()),
    ),
    (check_train_log, logs.read_train_log, lambda x: logs.read_train_log(x[:3])),
    (check_generate_log, read_generate_log, lambda x: {"sentences/s": 1.5}),
]
NAMES = [check.__name__ for check, _, _ in CHECKS]


@pytest.mark.parametrize("check, function, broken", CHECKS, ids=NAMES)
def test_the_numbers_are_those_worked_out_by_hand(check, function, broken):
    check(function)


@pytest.mark.parametrize("check, function, broken", CHECKS, ids=NAMES)
def test_the_checks_by_hand_can_fail(check, function, broken):
    with pytest.raises(AssertionError):
        check(broken)


def test_what_is_no_number_is_not_drawn():
    line = "| train_inner | epoch 001:    4 / 7 loss=2, gnorm={}, num_updates=4"
    for value, drawn in ("0.5", ([4], [0.5])), ("inf", ([], [])), ("nan", ([], [])):
        log = logs.read_train_log([line.format(value)])
        assert log.series("train_inner", "gnorm") == drawn
        assert log.series("train_inner", "loss") == ([4], [2])


def test_shares_and_agreement_are_counted():
    assert winners.share(races()) == 75
    assert winners.agreement(races()) == pytest.approx(100 / 3)


def test_length_groups_are_few_and_not_tiny():
    counts = [3, 4, *range(6, 26)] * 20
    uppers = lengths.edges(counts)
    groups = lengths.buckets(counts, uppers)
    assert len(groups) <= lengths.MOST_BUCKETS
    assert min(len(group.places) for group in groups) >= lengths.FEWEST
    assert lengths.edges([7]) and lengths.buckets([0, 0], lengths.edges([0, 0]))


# ------------------------------------------------------------ against sacreBLEU

OUTPUTS = {
    "one": ["the cat sat on the mat .", "He walked home", "yes", ""],
    "two": ["a cat sat on a mat .", "he ran home now", "yes , sir", "never"],
}
GOLDS = [
    ["the cat sat on the mat .", "he walked home now", "yes , sir", "never mind"],
    ["the cat is on a mat .", "he went home", "yes", "nothing"],
]


def assert_scores(made, lowercase):
    for name, text in OUTPUTS.items():
        bleu = sacrebleu.corpus_bleu(text, GOLDS, lowercase=lowercase).score
        chrf = sacrebleu.metrics.CHRF(lowercase=lowercase).corpus_score(text, GOLDS)
        ter = sacrebleu.metrics.TER(case_sensitive=not lowercase)
        assert made[name]["BLEU"] == pytest.approx(bleu)
        assert made[name]["chrF"] == pytest.approx(chrf.score)
        assert made[name]["TER"] == pytest.approx(ter.corpus_score(text, GOLDS).score)


@pytest.mark.parametrize("lowercase", [False, True])
def test_scores_are_sacrebleus(lowercase):
    made, signatures = scores.scored(OUTPUTS, GOLDS, scores.metrics(lowercase, "13a"))
    assert_scores(made, lowercase)
    assert f"case:{'lc' if lowercase else 'mixed'}" in signatures["BLEU"]


@pytest.mark.parametrize("chosen", [["one"], ["one", "two"]])
def test_the_table_scores_every_text_once(chosen, monkeypatch):
    """TER above all takes its time; the paired test gives the scores, too."""
    texts, seen = {name: OUTPUTS[name] for name in chosen}, []
    extract = sacrebleu.metrics.TER._extract_corpus_statistics

    def noted(self, hypotheses, references):
        seen.append(hypotheses)
        return extract(self, hypotheses, references)

    monkeypatch.setattr(sacrebleu.metrics.TER, "_extract_corpus_statistics", noted)
    given = inputs.Inputs(GOLDS[0], GOLDS, texts)
    found, *tests = scores.tables(given, chosen[-1], 20)
    assert seen == list(reversed(texts.values()))  # the baseline first
    expected, signatures = scores.scored(texts, GOLDS, scores.metrics(False, "13a"))
    assert found.rows == [[name, *expected[name].values()] for name in chosen]
    assert found.notes == [f"{key}: {value}" for key, value in signatures.items()]
    assert len(tests) == len(chosen) - 1
    for table in tests:
        assert [row[0] for row in table.rows] == ["one", "two (baseline)"]


def test_the_comparison_with_sacrebleu_can_fail():
    made, _ = scores.scored(OUTPUTS, GOLDS[:1], scores.metrics(False, "13a"))
    with pytest.raises(AssertionError):
        assert_scores(made, False)


def test_chinese_is_scored_by_characters():
    texts, gold = {"a": ["我爱中国菜"]}, [["我吃中国菜"]]
    made, signatures = scores.scored(texts, gold, scores.metrics(False, "zh"))
    assert made["a"]["TER"] == pytest.approx(20)  # one of five
    assert "tok:zh" in signatures["BLEU"] and "asian:yes" in signatures["TER"]
    plain, _ = scores.scored(texts, gold, scores.metrics(False, "13a"))
    assert plain["a"]["TER"] == pytest.approx(100)  # the check can fail


def test_tokenised_bleu_is_given_with_and_without_case():
    made, _ = scores.tokenised_table(OUTPUTS, GOLDS, False)
    lower = [text.lower() for text in OUTPUTS["one"]]
    plain = sacrebleu.corpus_bleu(lower, GOLDS, tokenize="none", force=True).score
    assert made["one"]["tokenised BLEU, lower case"] == pytest.approx(plain)
    assert made["one"]["tokenised BLEU"] < plain
    small = {"one": lower}
    assert list(scores.tokenised_table(small, GOLDS, False)[1]) == ["tokenised BLEU"]


def test_the_bootstrap_is_sacrebleus_and_finds_what_is_clear():
    good, bad = GOLDS[0] * 8, [f"bad {i}" for i in range(32)]
    systems = {"good": good, "same": list(good), "bad": bad}
    gold = [GOLDS[0] * 8]
    found, signatures = significance.bootstrap(
        systems, gold, "good", scores.metrics(False, "13a"), 50
    )
    assert found["good"]["BLEU"].p is None
    assert found["bad"]["BLEU"].p < 0.05 < found["same"]["BLEU"].p
    for name, text in systems.items():
        corpus = sacrebleu.corpus_bleu(text, gold).score
        assert found[name]["BLEU"].score == pytest.approx(corpus)
    assert "bs:50|seed:12345" in signatures[0]


def test_sentence_scores_are_sacrebleus():
    found = sentences.sentence_scores(OUTPUTS["two"], GOLDS)
    metric = sacrebleu.metrics.CHRF()
    for value, text, *golds in zip(found, OUTPUTS["two"], *GOLDS):
        assert value == pytest.approx(metric.sentence_score(text, golds).score, abs=0.1)


def test_the_oracle_is_never_worse_by_sentence():
    metric = BLEU(effective_order=True, tokenize="none")
    found = winners.choices(races(), [GOLD[::-1]], tokenize="none")
    for rule, texts in found.items():
        for a, b, gold in zip(texts, found["the better one (oracle)"], GOLD[::-1]):
            values = [metric.sentence_score(x, [gold]).score for x in (a, b)]
            assert values[0] <= values[1], rule


def test_the_aligner_finds_what_was_dropped():
    pytest.importorskip("eflomal", reason="eflomal is not installed")
    source = words(*[f"a{i} b{i % 7} c{i % 5}" for i in range(60)])
    gold = [[w.upper() for w in line] for line in source]
    short = [line[:-1] for line in gold]
    found, plain = alignment.estimate(source, gold, {"all": gold, "short": short})
    under = {name: max(run[1] for run in runs) for name, runs in found.items()}
    assert under["all"] < 1 and under["short"] > 15 and len(plain) == 2


# ------------------------------------------------------------------ the inputs


def record(i, source, winner="l2r", **texts):
    made = {"id": i, "source": source, "winner": winner}
    for name, score in (("l2r", -1.0), ("r2l", -2.0)):
        text = texts.get(name, "x@@ y")
        made[name] = None if text is None else {"text": text, "score": score}
    return json.dumps(made, ensure_ascii=False)


def test_records_are_ordered_and_their_words_joined(tmp_path):
    source = ["Hello, world!", "good morning"]
    path = put(
        tmp_path / "r.jsonl",
        record(1, "good mor@@ ning", "r2l", l2r=None),
        record(0, "hello , world !"),
    )
    found = records.read_races("--records sb", path, source)
    assert [race.winner for race in found] == ["l2r", "r2l"]
    assert found[0].text["r2l"] == "xy" and found[1].text["l2r"] is None
    path = put(tmp_path / "i.jsonl", *(record(None, line.lower()) for line in source))
    assert len(records.read_races("--records sb", path, [*source, source[0]])) == 3


@pytest.mark.parametrize(
    "lines, message",
    [
        ([record(0, "a")], r"for each of the 2 sentences, but has 1 \(none for line 2"),
        ([record(0, "a"), record(2, "b")], "has the id 2, but --source has the lines"),
        ([record(0, "b"), record(1, "a")], "only 0 of its 2 sources are the line"),
        (["{"], "line 1, must be JSON"),
        (['{"id": 0}'], "line 1, must be an object with id, source, winner"),
    ],
)
def test_wrong_records_are_refused(tmp_path, lines, message):
    path = put(tmp_path / "r.jsonl", *lines)
    with pytest.raises(ValueError, match=message):
        records.read_races("--records sb", path, ["a", "b"])


def test_tokens_of_chinese_are_characters():
    found = inputs.tokens_of(["我爱NLP。", "Hi, you!"], False, True)
    assert found == [["我", "爱", "nlp", "。"], ["hi", ",", "you", "!"]]
    assert records.join_subwords("▁Hal lo ▁Welt") == "Hallo Welt"


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path):
    path = tmp_path / "bad.pt"
    given = SimpleNamespace(checkpoints={"S": path}, train_logs={}, generate_logs={})
    given.systems = {"S": []}
    torch.save({"model": SimpleNamespace()}, path)
    with pytest.raises(ValueError, match=r"\(--checkpoint\) cannot be read safely"):
        speeds.section(given)
    torch.save({"weights": 1}, path)
    with pytest.raises(ValueError, match=r"\(--checkpoint\) must be a checkpoint of"):
        speeds.section(given)


# ----------------------------------------------------------------- the command


@pytest.fixture
def given(tmp_path):
    """Files of a small test set, and the command line that names them."""
    lines = [f"word{i} and more" for i in range(4)]
    put(tmp_path / "src", *lines)
    for number, text in enumerate(GOLDS):
        put(tmp_path / f"ref{number}", *text)
    for name, text in OUTPUTS.items():
        put(tmp_path / name, *text)
    put(
        tmp_path / "records",
        *(
            record(i, line, "l2r" if i else "r2l", l2r=OUTPUTS["one"][i], r2l="z")
            for i, line in enumerate(lines)
        ),
    )
    put(tmp_path / "log", *LOG.splitlines())
    runs = [{"system": "one", "beam": k, "BLEU": 30.0 + k} for k in (2, 4)]
    put(tmp_path / "sweep", json.dumps({"runs": runs}))
    penalised = {"runs": [{**run, "lenpen": 1.0} for run in runs]}
    put(tmp_path / "lenpens", json.dumps(penalised))
    command = ["--source", tmp_path / "src", "--output", tmp_path / "out"]
    for number in range(2):
        command += ["--reference", tmp_path / f"ref{number}"]
    for name in OUTPUTS:
        command += ["--system", f"{name}={tmp_path / name}"]
    command += ["--bootstrap-samples", 20, "--aligner-runs", 1]
    return tmp_path, [str(word) for word in command]


def test_the_report_has_all_sections_and_files(given):
    folder, command = given
    more = ["--records", f"one={folder / 'records'}", "--tokenised"]
    more += ["--train-log", f"one={folder / 'log'}"]
    more += ["--beam-sweep", folder / "sweep"]
    put(folder / "aer", json.dumps({"AER": {"score": 12.5}}))
    more += ["--aer", f"one={folder / 'aer'}"]
    call(report, *command, *more)
    html = (folder / "out" / "report.html").read_text()
    assert "Left out." not in html.split("</nav>")[1].split('id="trace"')[0]
    numbers = json.loads((folder / "out" / "numbers.json").read_text())
    assert numbers["alignment"]["aer"]["rows"] == [{"system": "one", "AER (%)": 12.5}]
    rows = {row["system"]: row for row in numbers["scores"]["scores"]["rows"]}
    corpus = sacrebleu.corpus_bleu(OUTPUTS["two"], GOLDS).score
    assert rows["two"]["BLEU"] == pytest.approx(corpus)
    assert numbers["winners"]["winners"]["rows"][0]["L2R won (%)"] == 75
    for name in ("scores", "accuracy", "by-length", "winners", "beam-sweep"):
        assert (folder / "out" / "figures" / f"{name}.png").stat().st_size > 1000
        assert b"<svg" in (folder / "out" / "figures" / f"{name}.svg").read_bytes()
        assert (folder / "out" / "numbers" / f"{name}.csv").exists()


def test_a_section_without_input_says_why(given):
    folder, command = given
    call(report, *command)
    call(report, *command)  # an earlier report is replaced
    numbers = json.loads((folder / "out" / "numbers.json").read_text())
    for key, reason in {
        "beams": "sbnmt sweep-beam",
        "speeds": "--checkpoint",
        "winners": "--sb-records",
        "training": "--train-log",
    }.items():
        assert reason in numbers[key]["left out"]
    assert not list(folder.glob(".out*"))


@pytest.mark.parametrize("rate", [None, 12.5])
def test_without_the_aligner_section_7_says_so(given, rate):
    folder, command = given
    put(folder / "aer", json.dumps({"AER": {"score": rate}}))
    more = [] if rate is None else ["--aer", f"one={folder / 'aer'}"]
    call(report, *command, *more, "--aligner-runs", 0)
    html = (folder / "out" / "report.html").read_text()
    assert "Asked for: --aligner-runs 0." in html
    numbers = json.loads((folder / "out" / "numbers.json").read_text())
    assert ("aer" in numbers["alignment"]) == (rate is not None)


@pytest.mark.parametrize(
    "words, message",
    [
        (["--system", "three=short"], "short must have as many lines as .*src, but"),
        (["--system", "three"], "--system must be NAME=FILE, but is 'three'"),
        (["--system", "one=ref0"], "--system one must be given once"),
        (["--records", "six=records"], "must name one of the systems"),
        (["--records", "one=missing"], "missing does not exist"),
        (["--buckets", "3,x"], "--buckets must be whole numbers"),
        (["--buckets", "5,3"], "--buckets must ascend"),
        (["--n", "0"], "--n must be ≥ 1, but is 0"),
        (["--baseline", "six"], "--baseline six=… must name one of the systems"),
        (["--beam-sweep", "ref0"], "must be what sbnmt sweep-beam wrote"),
        (["--beam-sweep", "lenpens"], "must be a sweep over beams, but is one over"),
        (["--aer", "one=ref0"], "make it by sbnmt aer --json"),
        (["--aer", "six=ref0"], "--aer six=… must name one of the systems"),
        (["--tokenised-reference", "ref0"], "go together"),
        (["--output", "."], "must be new, empty or an earlier report"),
        (["--output", "ref0"], "must be a folder, but is a file"),
    ],
)
def test_wrong_input_of_the_report_is_one_clear_error(given, words, message):
    folder, command = given
    put(folder / "short", "only")
    words = [w if w.startswith("--") else w.replace("=", f"={folder}/") for w in words]
    if words[0] in ("--beam-sweep", "--tokenised-reference", "--output"):
        words[1] = str(folder / words[1])
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        call(report, *command, *words)
    assert "\n" not in str(caught.value)
    assert not (folder / "out").exists()


def test_everything_in_the_page_is_escaped():
    evil = "</script><script>alert(1)</script>&<b>\u2028"
    table = content.Table(evil, evil, [content.Column(evil)], [[evil]], [evil])
    data = {"rows": [[evil, [evil], [evil], [1.0], 1, ""]], "systems": [evil]}
    section = content.Section("sentences", evil, evil, [table], [], [evil], data=data)
    html = page.render(evil, [evil], [section])
    assert "<script>alert" not in html and "<b>\u2028" not in html
    assert html.count("</script>") == 3  # the texts', the numbers' and ours
    missing = content.Section("beams", "t", missing=evil)
    assert "<script>alert" not in page.render("t", [], [missing])


def test_the_best_of_a_column_is_bold_only_among_several():
    column = content.Column("BLEU", "", ".2f", "high")
    table = content.Table("t", "", [column], [[1.0], [None], [2.0]])
    assert table.best_of(0) == 2.0 and column.show(None) == "–"
    assert content.Table("t", "", [column], [[1.0]]).best_of(0) is None
    assert table.csv() == 'BLEU\n1.0\n""\n2.0\n'


def test_figures_are_the_same_bytes_for_the_same_numbers():
    one, two = (scores.intervals({"a": (30, 1), "b": (31, 2)}, "x") for _ in range(2))
    assert one.svg == two.svg and one.png == two.png


def test_one_system_has_no_paired_test():
    made = inputs.Inputs(["a"], [["b"]], {"one": ["b"]})
    section = scores.section(made, "one", 10)
    assert any("second --system" in note for note in section.notes)


@pytest.mark.parametrize("detokenised", [False, True])
def test_a_recipes_folder_fills_everything_in(given, detokenised):
    folder, _ = given
    work, names = (
        folder / "work",
        ("teacher-l2r", "rerank", "sb@2", "sb+rescored", "sb"),
    )
    put(work / "data" / "test.en-de.en.idx")
    lines = read_lines(folder / "src")
    put(work / "text" / "test.en", *lines)
    put(work / "text" / "test.de", *GOLDS[0])
    if detokenised:
        put(work / "text" / "test.ref.de", *(x.replace(" .", ".") for x in GOLDS[0]))
    for name in names:
        put(work / "results" / f"{name}.txt", *OUTPUTS["one"])
        put(work / "results" / f"{name}.tok", *OUTPUTS["one"])
        put(work / "results" / f"{name}.json", "{}")
    put(work / "results" / "notes.txt", "of the user's")
    put(work / "results" / "rnmt.txt", "not scored: killed half-way")
    (folder / "records").rename(work / "results" / "sb.jsonl")
    put(work / "logs" / "train-sb.log", *LOG.splitlines())
    args = report.parser().parse_args(["--work", str(work), "--output", "x"])
    found = inputs.read(files.of_command(args))
    # as in the table
    order = ["teacher-l2r", "rerank", "sb", "sb@2", "sb+rescored"]
    assert list(found.systems) == order
    assert list(found.races) == list(found.train_logs) == ["sb"] and found.bitext == []
    assert found.tokenised[1] == [GOLDS[0]]
    assert found.tokenised[0]["sb"] == OUTPUTS["one"]
    assert (found.references == [GOLDS[0]]) == (not detokenised)
    with pytest.raises(FileNotFoundError, match=r"must be a folder that .* finished"):
        files.of_work(folder)


@pytest.mark.parametrize("detokenised", [False, True])
def test_a_recipes_folder_says_how_it_is_scored(tmp_path, detokenised):
    """Several references, case ignored: as in its table."""
    work, stem = tmp_path / "work", "test.ref.de" if detokenised else "test.de"
    put(work / "data" / "test.en-de.en.idx")
    put(work / "results" / "sb.json", "{}")
    settings = load_recipe(ROOT / "examples" / "multi30k", small=True)
    settings["score"] |= {"references": 2, "lowercase": True}
    put(work / "recipe.json", json.dumps(settings))
    put(work / "text" / stem)
    found = files.of_work(work)
    references = found.plain["reference"]
    assert references == [work / "text" / (stem + end) for end in ("", ".2")]
    assert found.lowercase


READ_LOG = """\
2026 | INFO | train_inner | epoch 001:    100 / 493 loss=9, nll_loss_l2r=8.5, nll_loss_r2l=8, read_bits_l2r=0.01, read_bits_r2l=-0.02, num_updates=100
2026 | INFO | train_inner | epoch 001:    200 / 493 loss=8, nll_loss_l2r=7, nll_loss_r2l=7, read_bits_l2r=0.31, read_bits_r2l=0.42, num_updates=200
"""  # noqa: E501


def test_the_curves_show_what_is_read(tmp_path):
    (log,) = [tmp_path / "log"]
    log.write_text(READ_LOG)
    given = SimpleNamespace(train_logs={"SB": log}, systems={"SB": None})
    section = training.section(given)
    rows = [row[2:] for row in section.tables[0].rows if "read" in row[2]]
    assert ["read_bits_l2r", 200, 0.31] in rows
    assert ["read_bits_r2l", 100, -0.02] in rows
    (figure,) = section.figures
    assert "bits a token that each reads of the other" in figure.caption
    log.write_text(READ_LOG.replace("read_bits", "other"))
    (figure,) = training.section(given).figures
    assert "reads of the other" not in figure.caption
