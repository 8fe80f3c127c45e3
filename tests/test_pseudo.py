"""sbnmt pseudo: shards, jobs that are continued, sources that are skipped."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from steps import call, pseudo_command, put

from sbnmt_plugin.tools import jobs, origin, translator
from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import pseudo


@pytest.fixture
def source(data):
    return data.parent / "texts" / "test.en"


@pytest.fixture
def translated(data, teacher, source, tmp_path):
    """Return a function that runs the step, and returns its output."""

    def run(*words, output="out.tsv", path=teacher, text=source):
        output = tmp_path / output
        call(pseudo, *pseudo_command(data, path, text, output, *words))
        return output

    return run


def test_a_killed_translation_continues(translated, tmp_path, monkeypatch):
    size = ["--shard-size", 5]
    whole, broken = translated(*size, output="whole.tsv"), tmp_path / "broken.tsv"
    rows = [line.split("\t") for line in texts.read_lines(whole)]
    assert [int(row[0]) for row in rows] == list(range(21))

    write, count = jobs.write_shard, []

    def dies(*args):
        count.append(1)
        if len(count) == 3:
            raise KeyboardInterrupt
        write(*args)

    monkeypatch.setattr(jobs, "write_shard", dies)
    with pytest.raises(KeyboardInterrupt):
        translated(*size, output=broken)
    assert not broken.exists()
    assert len(list(Path(f"{broken}.shards").glob("*.jsonl"))) == 2
    translated(*size, output=broken)
    assert len(count) == 6  # two done, one killed, three after it
    assert broken.read_text() == whole.read_text()


def test_a_text_in_other_tokens_is_told_of(translated, source, tmp_path, capsys):
    translated(output="own.tsv")
    assert "unknown" not in capsys.readouterr().err
    words = texts.read_lines(source)
    other = put(tmp_path / "raw", *[line.replace("w", "v") for line in words])
    translated(output="other.tsv", text=other)
    assert "100% of the first tokens of --input" in capsys.readouterr().err


def test_workers_divide_the_shards(translated):
    size = ["--shard-size", 5]
    whole = translated(*size, output="whole.tsv")
    for worker in (1, 0):
        parts = translated(*size, "--of", 2, "--worker", worker)
        assert parts.exists() == (worker == 0)
    assert parts.read_text() == whole.read_text()


def test_another_job_of_the_same_name_is_refused(
    translated, source, teacher, tmp_path, capsys
):
    text = shutil.copy(source, tmp_path / "in")
    model = shutil.copy2(teacher, tmp_path / "model.pt")

    def refused(reason):
        return pytest.raises(ValueError, match=f"begun with {reason}: remove")

    def again(*words, size=15):
        return translated("--shard-size", size, *words, path=model, text=text)

    again("--of", 2)
    with refused("other options"):  # half done
        again("--of", 2, size=10)
    output = again()
    whole = output.read_bytes()
    capsys.readouterr()
    again()
    assert "already written: nothing to do" in capsys.readouterr().err
    with refused("other options"):
        again("--lenpen", 0.3)
    os.utime(model, (1, 1))
    with refused(f"another {model}"):
        again()
    shutil.copystat(teacher, model)
    put(text, "w1")
    with refused("another input"):
        again()
    job = Path(f"{output}.shards") / "job.json"
    job.write_text("{")
    with pytest.raises(ValueError, match=r"job.json must be .* damaged .*: remove"):
        again()
    job.unlink()
    with pytest.raises(ValueError, match=r"job.json, which says from what, is miss"):
        again()
    assert output.read_bytes() == whole


def test_a_checksum_is_that_of_the_lines_as_they_were_ever_joined():
    for given in [["a", "b"], ["c"]], [[]], [["ä"]]:
        whole = "\n".join(line for text in given for line in text)
        expected = hashlib.sha256(whole.encode()).hexdigest()
        assert origin.sha256_of(*map(iter, given)) == expected


def test_the_checkpoints_that_a_command_names_are_found():
    words = ["data", "--path", "a.pt:b", "--x=c.pt", "--path=d=e:f.pt", "g.pt", "h"]
    words += ["--enat-table", "table", "--nat-teacher=i", "--input", "j"]
    found = ["a.pt", "b", "c.pt", "d=e", "f.pt", "g.pt", "table", "i"]
    assert origin.checkpoints_in(words) == found


def test_another_model_and_one_that_is_missing_make_another_job(tmp_path):
    model = put(tmp_path / "m.pt", "weights")
    now = jobs.describe_job(["a"], ["--path", str(model)])
    assert origin.differences(now, now) == []
    time = model.stat().st_mtime_ns
    put(model, "other weights")  # a copy may keep the time
    os.utime(model, ns=(time, time))
    newer = jobs.describe_job(["a"], ["--path", str(model)])
    model.unlink()
    gone = jobs.describe_job(["a"], ["--path", str(model)])
    for known, found in (now, newer), (now, gone), (gone, now):
        assert origin.differences(known, found) == [f"another {model}"]


def test_a_model_that_no_option_names_belongs_to_a_job(tmp_path):
    model = str(put(tmp_path / "m", "weights"))
    now = jobs.describe_job(["a"], [model], [model])
    assert list(now["models"]) == [model]
    put(Path(model), "other weights")
    newer = jobs.describe_job(["a"], [model], [model])
    assert origin.differences(now, newer) == [f"another {model}"]


@pytest.mark.parametrize("content", ["", "{", "3", '{"id": 1}', "\xff"])
def test_a_damaged_shard_is_named(translated, content):
    output = translated()
    output.unlink()
    shard = Path(f"{output}.shards") / "00000.jsonl"
    shard.write_bytes(content.encode("latin-1"))
    message = r"00000.jsonl.* must be " if content else "must hold the ids 0"
    with pytest.raises(ValueError, match=message):
        translated()
    assert not output.exists()


def test_an_output_that_is_a_folder_is_refused(translated):
    with pytest.raises(ValueError, match=r"--output .* must be a file, but is"):
        translated(output=".")


@pytest.mark.parametrize(
    "options",
    [
        ["--prefix-size", 1],
        ["--nbest", 2],
        ["--print-alignment"],
        ["--sb-records", "r"],
        ["--distributed-world-size", 2],
    ],
    ids=str,
)
def test_options_that_mean_nothing_here_are_refused(translated, options):
    with pytest.raises(ValueError, match=f"{options[0]} is not supported by a step"):
        translated(*options)


def test_settings_that_suit_no_sentence_are_an_error(translated, tmp_path):
    with pytest.raises(ValueError, match="--min-len must be ≤"):
        translated("--min-len", 300)
    tagged = put(tmp_path / "tag.en", "w1", "w2 <l2r>")
    with pytest.raises(ValueError, match=r"tag.en, line 2, must not contain <l2r>"):
        translated(text=tagged)


@pytest.mark.parametrize(
    ("flag", "named"),
    [
        ("--max-source-positions", ""),
        ("--max-tokens", ", as many as --max-tokens says"),
    ],
)
def test_overlong_and_failing_sources_are_listed(
    translated, tmp_path, monkeypatch, flag, named
):
    text = put(tmp_path / "in.en", "w1 w2", "w3 " * 30, "", "w4 w5 w6")
    original = translator.Translator._generate

    def fails(self, batch):
        if batch["net_input"]["src_tokens"].ne(1).sum(1).eq(4).any():
            return [(int(batch["id"]), "out of range")]
        return original(self, batch)

    monkeypatch.setattr(translator.Translator, "_generate", fails)
    output = translated(flag, 20, "--batch-size", 1, text=text)
    ids = [line.split("\t")[0] for line in texts.read_lines(output)]
    assert ids == ["0", "2"]
    skipped = texts.read_lines(f"{output}.skipped")
    reason = f"31 tokens, at most 20 are allowed{named}"
    assert skipped == [f"1\t{reason}", "3\tout of range"]


def test_a_batch_that_fails_is_translated_one_by_one(data, teacher):
    command = pseudo_command(data, teacher, "", "")[:-4]
    making = translator.Translator([str(word) for word in command])
    search = making.generator.generate

    def fragile(models, sample, **rest):
        assert "id" not in sample  # of which an error would tell
        if len(sample["net_input"]["src_tokens"]) > 1:
            raise FloatingPointError("no number")
        return search(models, sample, **rest)

    expected, _ = making.translate(["w1 w2", "w3", "w4 w1"])
    making.generator.generate = fragile
    found, skipped = making.translate(["w1 w2", "w3", "w4 w1"])
    assert not skipped
    assert {i: making.text(h) for i, h in found.items()} == {
        i: making.text(h) for i, h in expected.items()
    }


# by CTranslate2


def rows_of(path):
    return [line.split("\t") for line in texts.read_lines(path)]


def test_another_engine_translates_nearly_alike_and_says_how_nearly(
    translated, tmp_path, capsys
):
    pytest.importorskip("ctranslate2")
    odd = tmp_path / "odd.en"
    lines = [f"w{i} w{i + 1} w{i + 2}" for i in range(9)]
    odd.write_text("\n".join([*lines, "", "w1 " * 2000, "w1"]) + "\n")
    options = ["--lenpen", 0.6, "--shard-size", 50]
    whole = translated(*options, output="whole.tsv", text=odd)
    engine = ["--engine", "ctranslate2"]
    made = translated(*options, *engine, output="made.tsv", text=odd)
    one, other = rows_of(whole), rows_of(made)
    assert [row[0] for row in one] == [row[0] for row in other]
    (score, text), (their_score, their_text) = one[9][1:], other[9][1:]  # an empty line
    assert text == their_text == "" and score[:6] == their_score[:6]
    skipped = [Path(f"{x}.skipped").read_text() for x in (whole, made)]
    assert skipped[0] == skipped[1] and skipped[0].startswith("10\t")
    changed = sum(x[2] != y[2] for x, y in zip(one, other))
    assert changed <= 2
    assert f"{changed} of the first 11 lines are" in capsys.readouterr().err
    with pytest.raises(ValueError, match="begun with other options"):
        translated(*options, output="made.tsv", text=odd)


@pytest.mark.parametrize(
    "words",
    [
        ["--sb-int8"],
        ["--no-repeat-ngram-size", 2],
        ["--unkpen", 1],
        ["--sb-stop", "bound"],
    ],
    ids=str,
)
def test_another_engine_refuses_what_it_would_not_do(translated, words):
    pytest.importorskip("ctranslate2")
    with pytest.raises(ValueError, match="--engine ctranslate2 takes one model in"):
        translated("--engine", "ctranslate2", *words)


def test_another_engine_refuses_an_ensemble(translated, teacher):
    pytest.importorskip("ctranslate2")
    with pytest.raises(ValueError, match="--engine ctranslate2 takes one model in"):
        translated("--engine", "ctranslate2", path=f"{teacher}:{teacher}")


def test_a_source_without_a_score_by_another_engine_is_listed(
    translated, tmp_path, monkeypatch
):
    pytest.importorskip("ctranslate2")
    from sbnmt_plugin.tools.models.ctranslate2_engine import CTranslate2Engine

    search = CTranslate2Engine.search

    def none_of_two(self, sources):
        found = search(self, sources)
        return [[] if len(own) == 2 else x for own, x in zip(sources, found)]

    monkeypatch.setattr(CTranslate2Engine, "search", none_of_two)
    text = put(tmp_path / "in.en", "w1", "w2 w3", "w4 w5 w6")
    output = translated("--engine", "ctranslate2", text=text)
    assert [row[0] for row in rows_of(output)] == ["0", "2"]
    assert rows_of(f"{output}.skipped") == [["1", "the model gives no finite score"]]


def test_a_fault_of_another_engine_is_explained(translated, monkeypatch):
    pytest.importorskip("ctranslate2")
    from sbnmt_plugin.tools.models.converted import Converted

    def search(*_):
        raise RuntimeError("no memory")

    monkeypatch.setattr(Converted, "search", search)
    with pytest.raises(ValueError, match=r"CTranslate2 fails with .* \(no memory\)"):
        translated("--engine", "ctranslate2")


def test_another_engine_refuses_interaction(translated, trained):
    pytest.importorskip("ctranslate2")
    words = ["--engine", "ctranslate2", "--sb-direction", "both"]
    with pytest.raises(ValueError, match="that has no interaction"):
        translated(*words, path=trained)
