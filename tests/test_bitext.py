"""The recipe bitext: preparation of raw text, and settings by its size."""

import gzip
import json
import sys
from unittest import mock

import pytest
import yaml
from commands import ROOT
from corpora import raw_sentences as raw
from corpora import sentences
from steps import call, put

from sbnmt_plugin.tools import bitext as corpus
from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.recipes import bitext, duration, model_steps, runner
from sbnmt_plugin.tools.recipes.process import Logged
from sbnmt_plugin.tools.recipes.step import Step

FOLDER = ROOT / "examples" / "bitext"


def prepared(data, output, *words):
    """Run prepare.py; return the lines of each file."""
    options = ["--source", "en", "--target", "de", "--workers", 1, *words]
    words = ["--data", data, "--output", output, *options]
    with mock.patch.object(sys, "argv", ["prepare.py", *map(str, words)]):
        corpus.prepare("")
    return {p.name: p.read_text().splitlines() for p in output.iterdir()}


def assert_held_out(found, given):
    """No side of a held-out pair is trained on, and no line of the raw text is lost."""
    for side in "en", "de":
        held = [x for split in ("valid", "test") for x in found[f"{split}.{side}"]]
        assert held
        assert len(set(held)) == len(held)
        assert not set(held) & set(found[f"train.{side}"]), f"{side} is trained on"
    pairs = [p for s in ("train", "valid", "test") for p in pairs_of(found, s)]
    assert sorted(pairs) == sorted(zip(*given))


def pairs_of(found, split):
    return list(zip(found[f"{split}.en"], found[f"{split}.de"]))


@pytest.fixture
def given():
    """Sixty lines, a few of which stand there twice, or have a side of another."""
    source, target = sentences(60)
    source += [source[3], source[4], "some thing else ."]
    target += [target[3], "etwas anderes .", target[5]]
    return source, target


def test_lines_are_held_out_that_are_not_trained_on(tmp_path, given):
    found = prepared(raw(tmp_path / "raw", *given), tmp_path / "text")
    assert_held_out(found, given)
    assert len(found["valid.en"]) == len(found["test.en"]) == 6  # a tenth
    again = prepared(tmp_path / "raw", tmp_path / "again")
    assert again == found


def test_lines_that_become_the_same_are_not_held_out(tmp_path):
    source, target = sentences(60)
    source += [x.upper().replace(" ", "  ") for x in source[:40]]
    target += [x.replace(" .", "\N{FULLWIDTH FULL STOP}") for x in target[:40]]
    held = corpus.choose(zip(source, target), ["test"])
    assert set(held) <= set(range(40, 60))


def test_few_lines_give_one_at_least(tmp_path):
    found = prepared(raw(tmp_path / "raw", *sentences(9)), tmp_path / "text")
    assert [len(found[f"{x}.en"]) for x in ("train", "valid", "test")] == [7, 1, 1]


def test_the_check_of_held_out_lines_can_fail(tmp_path, given):
    found = prepared(raw(tmp_path / "raw", *given), tmp_path / "text")
    found["train.de"][0] = found["test.de"][0]
    with pytest.raises(AssertionError, match="de is trained on"):
        assert_held_out(found, given)


def test_packed_files_and_sets_that_are_given_are_taken_whole(tmp_path, given):
    data, held = raw(tmp_path / "raw", *given), sentences(5, start=70)
    raw(data, *held, split="valid")
    for path in list(data.iterdir()):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    found = prepared(data, tmp_path / "text")
    assert pairs_of(found, "valid") == list(zip(*held))
    assert len(found["train.en"]) == len(given[0]) - len(found["test.en"])
    assert corpus.count_lines(data, "en", "de") == len(given[0])


def test_sides_of_other_lengths_are_refused_at_once(tmp_path, given):
    source, target = given
    data = raw(tmp_path / "raw", source, target[:-1])
    message = r"/train.de must have as many lines as .*/train.en, but has only"
    with pytest.raises(ValueError, match=message):
        corpus.count_lines(data, "en", "de")


def test_pairs_are_left_out_and_counted_by_reason(tmp_path, capsys):
    source, target = sentences(60)
    for split in "valid", "test":
        raw(tmp_path / "raw", *sentences(3, start=80), split=split)
    bad = [("", "x"), ("x", ""), ("a " * 251, "b " * 251), ("a", "b " * 10)]
    bad += [("a </s>", "b"), ("a", "b@@")]
    source += [x for x, _ in bad]
    target += [y for _, y in bad]
    words = ["--no-tokenise"]
    found = prepared(raw(tmp_path / "raw", source, target), tmp_path / "text", *words)
    assert pairs_of(found, "train") == list(zip(source, target))[:60]
    said = capsys.readouterr().err
    for count, reason in (
        (2, "empty"),
        (1, "longer than 250 words"),
        (1, "more than 9 times as long as the translation"),
        (2, "with a reserved word"),
    ):
        assert f"train: {count} left out, {reason}" in said


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_bytes_that_are_no_text_are_an_error_with_file_and_line(tmp_path, ending):
    data = raw(tmp_path / "raw", *sentences(60))
    path = data / "train.de"
    text = path.read_bytes().replace(b"m7 ", b"m\xff ")
    path.unlink()
    packed = gzip.compress(text) if ending else text
    path.with_name(f"train.de{ending}").write_bytes(packed)
    with pytest.raises(ValueError, match=rf"train\.de{ending}, line 8, must be UTF-8"):
        prepared(data, tmp_path / "text")


def test_files_of_other_lengths_and_missing_ones_are_refused(tmp_path):
    data = raw(tmp_path / "raw", *sentences(60))
    put(data / "valid.en", "alone .")
    with pytest.raises(FileNotFoundError, match=r"valid\.de does not exist: put one"):
        prepared(data, tmp_path / "text")
    put(data / "valid.de", "a .", "b .")
    with pytest.raises(ValueError, match="must have as many lines as"):
        prepared(data, tmp_path / "text")


def test_too_few_lines_to_hold_out_are_refused(tmp_path):
    data = raw(tmp_path / "raw", ["the same ."] * 60, ["dasselbe ."] * 60)
    with pytest.raises(ValueError, match="12 pairs of lines that stand in train once"):
        prepared(data, tmp_path / "text")


def test_case_and_characters(tmp_path):
    source, target = sentences(60)
    target = [f"{x}你好" for x in target]
    data = raw(tmp_path / "raw", [x.upper() for x in source], target)
    words = ["--lowercase", "--characters", "de"]
    found = prepared(data, tmp_path / "text", *words)
    assert all(x == x.lower() for x in found["train.en"])
    assert all(x.endswith(" 你 好") for x in found["train.de"])
    assert all(x.endswith("你好") for x in found["test.ref.de"])


# settings


def args_of(*words):
    parser = run_recipe.parser()
    given = ["bitext", "--source", "en", "--target", "de", *map(str, words)]
    args, others = parser.parse_known_args(given)
    bitext.take(args, others)
    return args


def settings_of(lines, *words):
    return bitext.settings(FOLDER, args_of(*words), lines, on_cpu=True)


@pytest.mark.parametrize(
    ("lines", "arch", "merges", "tokens"),
    [
        (60, "transformer", 200, 2000),
        (2000, "transformer", 1000, 3000),
        (29_000, "transformer", 10_000, 8000),
        (99_999, "transformer", 10_000, 8000),
        (100_000, "transformer_iwslt_de_en", 16_000, 16_384),
        (4_500_000, "transformer_wmt_en_de_big", 37_000, 768),
    ],
)
def test_sizes_follow_the_number_of_lines(lines, arch, merges, tokens):
    found = settings_of(lines)
    assert found["teacher_arch"] == arch
    assert found["bpe"]["merges"] == merges
    assert found["train"]["--max-tokens"] == tokens
    assert found["sb_train"]["--max-tokens"] == 2 * tokens
    assert found["train"]["--cpu"] is None and found["train"]["--num-workers"] == 0


def test_single_options_win_over_sizes_and_updates():
    words = ["--size", "base", "--updates", 60, "--dropout", "0.4", "--max-tokens=999"]
    train = settings_of(29_000, *words)["train"]
    assert train["--dropout"] == "0.4"
    assert train["--max-tokens"] == "999"
    assert train["--max-update"] == 60
    assert train["--warmup-updates"] == 12
    assert train["--save-interval-updates"] == 6
    assert not train["--total-num-update"]  # its schedule has none
    alone, asked = (
        settings_of(29_000, flag, 60)["train"] for flag in ("--max-update", "--updates")
    )
    assert alone | {"--max-update": 60} == asked
    assert asked["--total-num-update"] == 60  # the rate is 0 from there on
    found = settings_of(29_000, "--encoder-layers", 1, "--updates", 60)
    assert found["model"]["--encoder-layers"] == "1"
    assert found["train"]["--total-num-update"] == 60


def test_the_reason_of_every_setting_is_said():
    args = args_of()
    for lines, poor in (60, True), (10_000, False):
        found = bitext.settings(FOLDER, args, lines, on_cpu=True)
        said = "\n".join(bitext.explanation(args, found, lines))
        assert "small, by the number of lines (options measured on Multi30k" in said
        assert ("Nothing good can come of fewer than 10,000 lines" in said) == poor


@pytest.mark.parametrize(
    ("torn", "words", "told"),
    [
        (0, [], None),
        (1, [], "1.7 % of 60 lines of train.de differ when detokenised."),
        (2, [], "when detokenised (above 2 %): take --subwords sentencepiece"),
        (2, ["--subwords", "sentencepiece"], None),
        (2, ["--no-tokenise"], None),
    ],
)
def test_lines_that_tokens_would_lose_are_told_of(tmp_path, capsys, torn, words, told):
    target = [*["„Ja“"] * torn, *["Ja."] * (60 - torn)]
    data = raw(tmp_path, sentences(60)[0], target)
    run_recipe.settings_for(FOLDER, args_of("--data", data, *words))
    said = capsys.readouterr().out
    assert told in said if told else "detokenised" not in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "en"], "--source and --target must name two languages"),
        (["--model", "rerank"], "--model rerank must be a row with a model"),
        (["--model", "paper"], "--model paper must be a row with a model"),
        (["--model", "multilingual"], "--model multilingual must be a row with a mo"),
        (
            ["--updates", "9", "--max-update", "9"],
            "^--updates sets --max-update: g",
        ),
        (["--max-tokens", "many"], "--max-tokens must be a whole number ≥ 1, but is m"),
        (["--max-tokens", "0"], "--max-tokens must be a whole number ≥ 1, but is 0"),
        (["--max-tokens", "²"], "--max-tokens must be a whole number ≥ 1, but is ²"),
        (["--max-update", "1e5"], "--max-update must be a whole number ≥ 1, but is 1e"),
        (["--max-update"], "--max-update must be a whole number ≥ 1, but is None"),
        (["--target", "pt-BR"], "--target must be of letters, digits and _, but is pt"),
        (["--target", "sw", "--subwords", "bpe"], "no rules that tokenise sw: give --"),
        (["--characters", "xx"], "--characters must name en or de, but has xx"),
        (["--lr", "1", "2"], "2 must follow an option of one value"),
        (["--save-dir", "x"], "^--save-dir is chosen by the recipe: leave it out"),
        (["--seed", "2"], "^--seed is chosen by the recipe: leave it out"),
        (["--lr", "1", "--arch=x"], "^--arch is chosen by the recipe: leave it out"),
        (["--fp16", "-s", "en"], "^-s must be --source for a recipe"),
        (["--target-lang=de"], "^--target-lang must be --target for a recipe"),
        (
            ["--subwords", "sentencepiece", "--no-tokenise"],
            "--no-tokenise is for --subwords bpe",
        ),
        (
            ["--target", "ja", "--subwords", "sentencepiece", "--characters", "ja"],
            "is for",
        ),
    ],
)
def test_wrong_options_are_refused(words, message):
    with pytest.raises(ValueError, match=message):
        args = args_of(*words)
        if args.model:
            bitext.model_row(args.model)
        bitext.settings(FOLDER, args, 60, on_cpu=True)


@pytest.mark.parametrize("flag", ["--cpu", "--bf16", "--amp"])
def test_a_wider_type_that_is_asked_for_takes_the_place_of_float16(flag):
    for words, narrow in ([], True), ([flag], False):
        found = bitext.settings(FOLDER, args_of(*words), 60, on_cpu=False)
        assert ("--fp16" in found["train"]) == narrow


@pytest.mark.parametrize(
    ("words", "cpu"), [([], True), (["--executor", "slurm"], False)]
)
def test_jobs_of_a_cluster_have_gpus(words, cpu, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    data = raw(tmp_path / "raw", *sentences(60))
    found = run_recipe.settings_for(FOLDER, args_of("--data", data, *words))
    assert ("--cpu" in found["train"]) == cpu


def test_too_little_text_is_refused():
    with pytest.raises(ValueError, match="--data must have 50 lines or more, but"):
        settings_of(49)


def test_other_recipes_take_none_of_these_options(tmp_path):
    words = ["--work", tmp_path / "work", "--dropout", "0.1"]
    with pytest.raises(ValueError, match="--dropout is for a recipe of any text"):
        call(run_recipe, ROOT / "examples" / "toy", *words)
    with pytest.raises(ValueError, match="--small is not for bitext: give --size"):
        call(run_recipe, FOLDER, "--work", tmp_path / "work", "--small")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ([], "bpe"),
        (["--target", "sw"], "sentencepiece"),
        (["--target", "ja"], "sentencepiece"),
        (["--target", "ja", "--characters", "ja"], "bpe"),
        (["--target", "sw", "--no-tokenise"], "bpe"),
        (["--subwords", "sentencepiece"], "sentencepiece"),
    ],
)
def test_subwords_follow_the_language(words, kind):
    assert bitext.subwords_of(args_of(*words))[0] == kind


def test_the_folder_knows_how_each_language_is_tokenised():
    for words, expected in (
        ([], ["moses", "moses"]),
        (["--no-tokenise"], ["none", "none"]),
        (["--characters", "de"], ["moses", "characters"]),
    ):
        found = bitext.texts(args_of(*words))["prepare"]
        assert model_steps.tokenisers(found) == expected


def test_the_duration_follows_from_the_first_updates():
    line = "| train_inner | epoch 001: {0} / 9 loss=1, wps=1000.0, ups=0.5, wpb=8, "
    line += "bsz=1, num_updates={0}, lr=1"
    options = ["--max-update", "1800"]
    plain = Step.of("train/a", "", options, FOLDER)
    both = Step.of("train/b", "", [*options, "--sb-fusion", "tanh"], FOLDER)
    assert not duration.forecast([plain], [line.format(10)])
    endless = line.format(20).replace("1000.0", "inf")
    assert not duration.forecast([plain], [line.format(10), endless])
    epochs = Step.of("train/c", "", ["--max-epoch", "3"], FOLDER)
    assert not duration.forecast([plain, epochs], [line.format(10), line.format(20)])
    said = duration.forecast([plain, both], [line.format(10), line.format(20)])
    assert "1,000 tokens a second" in said
    assert "about 2 hours" in said  # (1800 · 2.5 - 20) / 0.5 = 8,960 seconds
    assert "--size small" in said
    teachers = [Step.of(f"train/teacher-{x}", "", options, FOLDER) for x in "ab"]
    lines = [line.format(10), line.format(20)]
    for jobs, minutes in (1, "4 hours"), (2, "2 hours"), (7, "2 hours"):
        # teachers of an hour each, then 1 hour and 1.5
        told = duration.forecast([*teachers, plain, both], lines, jobs)
        assert f"about {minutes}" in told
    for step in plain, both:
        assert "about 31 minutes" in duration.forecast(
            [step], [line.format(890), line.format(900)]
        )


def test_the_duration_is_told_once_as_the_first_training_runs(tmp_path, capfd):
    line = "| train_inner | epoch 001: {0} / 9 wps=9.0, ups=2.0, num_updates={0}, lr=1"
    heard = [line.format(update) for update in (10, 20, 30)]
    program = f"print(*{['other', *heard]}, sep='\\n')"
    training = Step.of("train/a", "", ["--max-update", "1200"], FOLDER)
    made = runner.Runner(tmp_path, {})
    log = made.log(training)
    log.parent.mkdir()
    command = Logged([sys.executable, "-c", program], "training", log)
    made.hearing[training] = duration.forecaster([training], 2)
    made.run_here(training, command)
    assert capfd.readouterr().err.count("about 11 minutes") == 1
    assert heard[2] in log.read_text("utf-8")


def test_a_missing_sentencepiece_is_told_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    for language in "en", "sw":
        put(tmp_path / f"train.{language}", *map(str, range(60)))
    words = ["--source", "en", "--target", "sw", "--data", tmp_path]
    with pytest.raises(ValueError, match="sentencepiece must be installed"):
        call(run_recipe, "bitext", *words, "--work", tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_recipes_and_rows_are_listed(capsys):
    call(run_recipe, "--list")
    said = capsys.readouterr().out
    assert "  bitext" in said
    assert "  sb-lambda0 " in said
    assert "  paper" in said


@pytest.mark.parametrize("words", [[], ["--lowercase"]])
def test_a_model_of_lower_cased_text_lowers_its_input(words, capsys):
    call(run_recipe, "bitext", "--source", "en", "--target", "de", "--print", *words)
    bundled = capsys.readouterr().out.rpartition("sbnmt bundle")[2]
    assert ("--lowercase" in bundled) == bool(words)


def test_a_script_makes_the_model_that_is_asked_for(capsys):
    words = ["--source", "en", "--target", "de", "--print", "--model", "sb-paper@1"]
    call(run_recipe, "bitext", *words)
    bundled = capsys.readouterr().out.rpartition("sbnmt bundle")[2]
    assert "/sb/model.pt" in bundled
    assert "--sb-rescore" not in bundled


@pytest.mark.parametrize(
    ("section", "key", "own"),
    [
        ("train", "--max-tokens", {"--max-update": 9, "--batch-size": 8}),
        ("train", "--max-update", {"--max-tokens": 900, "--max-epoch": 3}),
        ("bpe", "merges", {"kind": "none"}),
        ("decode", "--beam", ["--lenpen", 1]),
    ],
)
def test_a_recipe_with_sizes_has_what_its_sizes_compute_with(
    tmp_path, section, key, own
):
    recipe = yaml.safe_load((FOLDER / "recipe.yaml").read_text())
    recipe |= {section: own, "sizes": {"small": {}}}
    path = put(tmp_path / "mine" / "recipe.yaml", yaml.safe_dump(recipe))
    words = ["--source", "en", "--target", "de", "--print"]
    with pytest.raises(ValueError, match=f"{section} must have {key}, which a rec"):
        call(run_recipe, path.parent, *words)


def test_the_settings_that_are_kept_are_json():
    assert json.loads(json.dumps(settings_of(60))) == settings_of(60)


@pytest.mark.parametrize("code", ["cn", "zh"])
def test_a_script_without_blanks_has_a_code_that_says_so(tmp_path, code):
    put(tmp_path / "train.en", "I love you.")
    put(tmp_path / f"train.{code}", "我爱你们。")
    if code == "zh":
        assert corpus.check_code(tmp_path, "en", code) is None
        assert corpus.check_code(tmp_path, code, "en") is None
    else:
        with pytest.raises(ValueError, match=r"^--target must be one of zh,.* is cn: "):
            corpus.check_code(tmp_path, "en", code)
