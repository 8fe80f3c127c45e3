"""The recipes: prepare.py on data laid out as the real files are, and the settings."""

import contextlib
import gzip
import json
import math
import sys
from types import SimpleNamespace
from unittest import mock

import corpora
import fairseq.options
import in_process
import pytest
import torch
import yaml
from commands import ROOT
from fairseq.data import Dictionary
from steps import call

from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.tools import published, raw_data
from sbnmt_plugin.tools.commands import prepare as prepare_step
from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.settings import flags, search_options, searching
from sbnmt_plugin.tools.recipes.stages import training_options
from sbnmt_plugin.tools.recipes.systems import PAPER
from sbnmt_plugin.tools.unfinished import new_file

LANGUAGES = {
    "techdocs_zh_en": ("zh", "en"),
    "wmt14_en_de": ("en", "de"),
    "wmt18_ru_en": ("ru", "en"),
    "nist_zh_en": ("zh", "en"),
}
TRAIN_PARTS = {"techdocs_zh_en": 2, "wmt14_en_de": 3, "wmt18_ru_en": 4, "nist_zh_en": 7}
PUBLISHED = ["wmt14_en_de", "wmt18_ru_en", "nist_zh_en"]


def prepare(name, *words):
    """Run a recipe's prepare.py with a command line; errors pass through."""
    path = ROOT / "examples" / name / "prepare.py"
    module = in_process.load(path)
    with mock.patch.object(sys, "argv", ["prepare.py", *map(str, words)]):
        published.prepare(module.__doc__, str(path), module.CORPUS)


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def recipe(name):
    path = ROOT / "examples" / name / "recipe.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The folder of each recipe's raw files, and that of the text made of them."""
    found = {}
    for name, lay_out in corpora.LAY_OUT.items():
        folder = tmp_path_factory.mktemp(name)
        found[name] = lay_out(folder / "raw"), folder / "text"
        lowercase = ["--lowercase"] * (name == "nist_zh_en")
        raw, text = found[name]
        prepare(name, "--data", raw, "--output", text, *lowercase)
    return found


@pytest.fixture
def techdocs(tmp_path):
    """The raw files of a recipe, and the words by which prepare.py reads them."""
    raw = corpora.lay_out_techdocs(tmp_path / "raw")
    return raw, ["techdocs_zh_en", "--data", raw, "--output", tmp_path / "text"]


@pytest.mark.parametrize("name", LANGUAGES)
def test_each_recipe_reads_its_raw_files(name, texts):
    raw, text = texts[name]
    for language in LANGUAGES[name]:
        train = lines(text / f"train.{language}")
        assert len(train) == TRAIN_PARTS[name] * corpora.TRAIN
    valid, test = lines(text / f"valid.{language}"), lines(text / f"test.{language}")
    assert len(valid) >= corpora.HELD_OUT <= len(test)
    reference = lines(text / f"test.ref.{language}")
    joined = [line.replace(" .", ".") for line in test]
    lowercase = name == "nist_zh_en"
    assert joined == [line.lower() if lowercase else line for line in reference]
    assert test != reference
    assert not list(raw.glob("**/.*.tmp"))


def test_the_step_prepare_passes_a_recipes_options_on(techdocs):
    raw, (_, *words) = techdocs
    call(prepare_step, ROOT / "examples" / "techdocs_zh_en", *words, "--first", 7)
    assert len(lines(words[-1] / "train.zh")) == 7
    (raw / "test.zh").unlink()
    with pytest.raises(SystemExit):
        call(prepare_step, "techdocs_zh_en", *words)


def test_a_recipe_says_what_raw_files_it_wants(tmp_path):
    for name in (*LANGUAGES, "multi30k"):
        with pytest.raises(ValueError, match=r"--data must name a folder with .+"):
            call(run_recipe, ROOT / "examples" / name, "--work", tmp_path / name)
        assert not (tmp_path / name / "logs").exists()  # before any step


def test_nist_has_four_references_and_four_test_sets(texts):
    _, text = texts["nist_zh_en"]
    sets = [line.split("\t") for line in lines(text / "test.sets")]
    assert sets == [["MT03", "15"], ["MT04", "16"], ["MT05", "17"], ["MT06", "18"]]
    count = sum(int(size) for _, size in sets)
    for number, suffix in enumerate(["", ".2", ".3", ".4"]):
        tokens = lines(text / f"test.en{suffix}")
        assert len(tokens) == count
        assert all(line.endswith(f" {number} .") for line in tokens)
        given = lines(text / f"test.ref.en{suffix}")
        assert all(line[0].isupper() for line in given)  # texts alone are lower-cased
        assert [line.lower() for line in given] == [
            line.replace(" .", ".") for line in tokens
        ]
    assert len(lines(text / "test.zh")) == count
    assert all(line.endswith(" 。") for line in lines(text / "test.zh"))
    assert len(lines(text / "valid.en")) == len(lines(text / "valid.zh")) == 14
    assert not (text / "valid.sets").exists()


def test_training_pairs_stay_pairs(texts):
    _, text = texts["wmt14_en_de"]
    german = dict(zip(corpora.NOUNS["en"], corpora.NOUNS["de"]))
    for split in "train", "valid", "test":
        columns = (lines(text / f"{split}.{language}") for language in ("en", "de"))
        for source, target in zip(*columns):
            words = [german.get(word, word) for word in source.lower().split()]
            assert " ".join(words).lower() == target.lower()


def test_the_file_that_the_driver_waits_for_comes_last(techdocs):
    _, words = techdocs
    written = []

    @contextlib.contextmanager
    def watched(path):
        with new_file(path) as file:
            yield file
        written.append(path.name)

    with mock.patch.object(published, "new_file", watched):
        prepare(*words)
    assert len(written) == 8 and written[-1] == "test.en"


def test_first_reads_some_lines_of_each_file(texts, tmp_path):
    raw, _ = texts["wmt18_ru_en"]
    words = ["wmt18_ru_en", "--data", raw, "--output", tmp_path, "--first"]
    prepare(*words, 7)
    assert len(lines(tmp_path / "train.ru")) == 4 * 7
    assert len(lines(tmp_path / "test.en")) == 7
    with pytest.raises(ValueError, match="--first must be ≥ 1, but is 0"):
        prepare(*words, 0)


def test_a_missing_file_is_named_with_its_remedy(tmp_path):
    raw = corpora.lay_out_wmt18(tmp_path / "raw")
    words = ["wmt18_ru_en", "--data", raw, "--output", tmp_path / "text"]
    for name, remedy in (
        ("test/newstest2017-ruen-src.ru.sgm", "fetch .*wmt17/.*unpack"),
        ("corpus.en_ru.1m.en", "ask for 1mcor"),
    ):
        (raw / name).unlink()
        said = rf"{name} does not exist: {remedy}"
        with pytest.raises(FileNotFoundError, match=said):
            prepare(*words)
    assert not (tmp_path / "text").exists()


def test_sentences_of_some_lengths(techdocs, texts):
    """Of all sets, by the target's tokens: these, and no others."""
    _, words = techdocs
    prepare(*words, "--words", 5, 7)  # a full stop is one
    for split in ("train", "valid", "test"):
        names = [f"{split}.en", f"{split}.zh"]
        names += [f"{split}.ref.en"] if split != "train" else []
        every, some = (
            [*zip(*(lines(folder / name) for name in names))]
            for folder in (texts["techdocs_zh_en"][1], words[-1])
        )
        assert some == [row for row in every if 5 <= len(row[0].split()) <= 7]
        assert 0 < len(some) < len(every)


def test_lengths_that_leave_nothing_are_refused(techdocs, capsys):
    _, words = techdocs
    with pytest.raises(ValueError, match=r"train of .* must have a sentence, but all"):
        prepare(*words, "--words", 80, 90)
    assert "180 left out, not as long as --words asks for" in capsys.readouterr().err


def test_empty_text_is_refused(techdocs):
    raw, words = techdocs
    for language in ("zh", "en"):
        (raw / f"test.{language}").write_bytes(b"")
    with pytest.raises(ValueError, match=r"test\.zh must have at least one line"):
        prepare(*words)


def test_a_text_whose_gz_is_cut_off_is_named(tmp_path):
    path = tmp_path / "text.zh.gz"
    content = gzip.compress(b"".join(b"line %d\n" % i for i in range(2000)))
    path.write_bytes(content)
    assert sum(1 for _ in raw_data.lines_of(path)) == 2000
    path.write_bytes(content[:-20])
    with pytest.raises(ValueError, match=r"text\.zh\.gz must be a whole file"):
        list(raw_data.lines_of(path))


def test_a_file_beside_its_gz_is_not_chosen_silently(tmp_path):
    path = tmp_path / "train.en"
    assert raw_data.existing(path) is None
    packed = tmp_path / "train.en.gz"
    packed.touch()
    assert raw_data.existing(path) == packed
    path.touch()
    with pytest.raises(ValueError, match=r"must not stand beside train\.en\.gz"):
        raw_data.existing(path)


@pytest.mark.parametrize("name", ["wmt14_en_de", "wmt18_ru_en"])
def test_every_archive_has_an_address_of_its_own(name):
    corpus = in_process.load(ROOT / "examples" / name / "prepare.py").CORPUS
    parts = [*corpus.train, corpus.valid, *corpus.test]
    archives = [part.archive for part in parts if part.archive]
    assert len({x.name for x in archives}) == len({x.url for x in archives}) == 5
    assert all(x.url.startswith("https://") for x in archives)


def test_cleaning_is_mosess_clean_corpus_n():
    limits = published.Limits(longest=4, ratio=3, word=5)

    def keep(pair):
        return not limits.problem(pair)

    assert keep(("a b c d", "a b"))
    assert keep(("a b c", "a"))
    assert not keep(("a b c d", "a"))  # ratio
    assert not keep(("a b c d e", "a b c"))  # too long
    assert not keep(("a", ""))
    assert not keep(("abcdef", "a"))
    assert published.Limits() == published.Limits(longest=80, ratio=9, word=1000)


def test_white_space_of_all_kinds_is_a_blank(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("\ufeffa\u2028b\rc\u00a0d \te\r\n\nf".encode())
    assert [*raw_data.lines_of(path)] == ["a b c d e", "", "f"]


def test_many_lines_are_tokenised_in_order_by_processes():
    rows = [(f"好{i}。", f"good {i}.") for i in range(40)]
    expected = [(f"好 {i} 。", f"good {i} .") for i in range(40)]
    with mock.patch.multiple(raw_data, CHUNK=3, GROUP=4):
        for workers in (1, 2):
            found = raw_data.tokenised(iter(rows), ("zh", "en"), False, workers)
            assert [*found] == expected


SECTION_4_1 = {  # subwords, merges, dictionary, whether case is ignored, references
    "wmt14_en_de": ("joint", 37000, 37000, False, 1),
    "wmt18_ru_en": ("joint", 50000, 52000, True, 1),
    "nist_zh_en": ("separate", 30000, 2 * 30000, True, 4),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_vocabularies_and_scores_are_as_in_section_4_1(name):
    kind, merges, words, lowercase, references = SECTION_4_1[name]
    settings = recipe(name)
    assert settings["bpe"] == {"kind": kind, "merges": merges}
    assert settings["preprocess"] == ["--joined-dictionary", "--nwordssrc", words]
    assert settings["score"] == {"lowercase": lowercase, "references": references}


@pytest.mark.parametrize("name", PUBLISHED)
def test_training_is_as_in_section_4_2(name):
    settings = recipe(name)
    train = settings["train"]
    assert train["--adam-betas"] == "(0.9, 0.998)"
    assert float(train["--adam-eps"]) == 1e-9
    assert train["--warmup-updates"] == 16000
    assert math.isclose(train["--lr"], (1024 * 16000) ** -0.5, rel_tol=1e-3)
    assert train["--lr-scheduler"] == "inverse_sqrt"
    assert train["--label-smoothing"] == train["--dropout"] == 0.1
    assert settings["teacher_arch"] == "transformer_wmt_en_de_big"
    assert settings["sb_arch"] == "sb_transformer_wmt_en_de_big"
    assert settings["sb_train"]["--sb-lambda"] == 0.1
    assert settings["sb_train"]["--sb-fusion"] == "tanh"
    assert settings["average"] == (0 if name == "nist_zh_en" else 20)
    decode = settings["decode"]
    expected = {"--beam": 4, "--lenpen": 0.6, "--sb-length-penalty": "gnmt"}
    assert expected.items() <= dict(zip(decode[::2], decode[1::2])).items()


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_update_is_the_papers_gpus_times_the_releases_batch(name):
    settings = recipe(name)
    train, gpus = settings["train"], 1 if name == "nist_zh_en" else 3
    assert train["--max-tokens"] * train["--update-freq"] == gpus * 2048
    # as many sentences for SB-NMT; and every sentence fits into a batch
    assert settings["sb_train"]["--max-tokens"] == 2 * train["--max-tokens"]
    assert train["--max-source-positions"] <= train["--max-tokens"]
    assert train["--max-target-positions"] <= train["--max-tokens"]
    # fairseq validates in the middle of an epoch only where it saves
    assert train["--max-update"] % train["--save-interval-updates"] == 0


@pytest.mark.parametrize("name", LANGUAGES)
def test_searches_have_the_numbers_of_the_trainings(name):
    for small, expected in ((False, ["--fp16"]), (True, ["--cpu"])):
        found = load_recipe(ROOT / "examples" / name, small)
        assert searching(found) == expected
        assert set(search_options(found)) & {"--cpu", "--fp16"} == {*expected}


def options_of(settings, system):
    """fairseq's options of a system, as fairseq-train reads them."""
    options = {"--user-dir": ROOT / "sbnmt_plugin"}
    options |= training_options(settings, Row(system))
    parser = fairseq.options.get_training_parser()
    return fairseq.options.parse_args_and_arch(parser, ["data", *flags(options)])


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("system", ["teacher-l2r", "sb"])
def test_models_are_as_large_as_the_papers(name, system):
    args = options_of(load_recipe(ROOT / "examples" / name, False), system)
    sizes = "embed_dim", "ffn_embed_dim", "attention_heads", "layers"
    for side in "encoder", "decoder":
        found = [getattr(args, f"{side}_{size}") for size in sizes]
        assert found == [1024, 4096, 16, 6]
    assert (args.dropout, args.attention_dropout) == (0.1, 0.0)
    assert args.share_all_embeddings


@pytest.mark.parametrize("rows, millions", [(30720, 207.8), (60000, 237.8)])
def test_parameters_of_nist_with_one_embedding_matrix(rows, millions):
    """30,720 rows make the paper's 207.8M; two vocabularies of 30K make more."""
    dictionary = Dictionary()
    while len(dictionary) < rows:
        dictionary.add_symbol(f"w{len(dictionary)}")
    for tag in TAGS:
        dictionary.add_symbol(tag)
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    args = options_of(load_recipe(ROOT / "examples" / "nist_zh_en", False), "sb")
    with torch.device("meta"):
        model = SBTransformerModel.build_model(args, task)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert round(count / 1e6, 1) == millions


ROWS = {"wmt18_ru_en": ["sb", "rnmt", "rerank"]}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_whole_chain_runs_on_files_laid_out_as_the_real_ones(
    name, tmp_path, capsys
):
    corpora.LAY_OUT[name](tmp_path / "raw")
    work, rows = tmp_path / "work", ROWS.get(name, ["teacher-l2r"])
    words = ["--small", "--work", work, "--data", tmp_path / "raw", "--rows", *rows]
    in_process.make(ROOT / "examples" / name, *words)
    table = json.loads((work / "table.json").read_text())
    assert [row["name"] for row in table["rows"]] == sorted(rows, key=list(PAPER).index)
    settings = load_recipe(ROOT / "examples" / name, small=True)
    signature = table["signatures"]["tokenised BLEU"]
    assert f"nrefs:{settings['score']['references']}|" in signature
    assert ("case:lc" in signature) == settings["score"]["lowercase"]
    assert "tok:none" in signature
    sets = table["rows"][-1].get("sets", {})
    assert list(sets) == (["MT03", "MT04", "MT05", "MT06"] if "nist" in name else [])
    output = capsys.readouterr().out
    assert all(row["title"] in output for row in table["rows"])
