"""What the README's commands do: its blocks from raw text to BLEU, and the tests."""

import re
import shutil
import subprocess

import pytest
from commands import NO_WORKERS, ROOT, lines, write_texts
from pages import code_of, section_of
from shell import run_script


@pytest.fixture
def tests_of_nothing(tmp_path):
    """scripts/test.sh where every tool is a stub, and its result with a PATH."""
    clone = tmp_path / "clone"
    files = "setup.py", "constraints.txt", "requirements.lock"
    for name in (*files, "scripts/setup.sh", "scripts/test.sh"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    tools = clone / ".venv" / "bin"
    tools.mkdir(parents=True)
    for name in ("ruff", "shellcheck", "mypy", "python"):
        # python -m pytest -n 2 --dist loadfile STATUS
        status = '"${7:-0}"' if name == "python" else "0"
        (tools / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tools / name).chmod(0o755)
    stamp = "cat setup.py constraints.txt | cksum"
    done = subprocess.run(stamp, shell=True, cwd=clone, capture_output=True, text=True)
    (clone / ".venv" / ".installed").write_text(done.stdout.strip())
    path = tmp_path / "path"
    path.mkdir()
    for name in ("bash", "cat", "cksum", "dirname"):
        (path / name).symlink_to(shutil.which(name))

    def run(*words, browser):
        for name in ("chromium", "chromedriver"):
            if browser:
                (path / name).symlink_to(shutil.which("true"))
            else:
                (path / name).unlink(missing_ok=True)
        return subprocess.run(
            [clone / "scripts" / "test.sh", *words],
            env={"PATH": str(path)},
            capture_output=True,
            text=True,
        )

    return run


def test_the_tests_end_with_what_they_lacked(tests_of_nothing):
    """Without chromium the last line says so, and how to install it."""
    done = tests_of_nothing(browser=False)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert "the report's page were skipped" in last
    assert last.endswith("sudo apt-get install chromium chromium-driver")
    done = tests_of_nothing(browser=True)
    assert done.stdout.splitlines()[-1] == "== pytest"


def test_the_note_does_not_hide_that_tests_failed(tests_of_nothing):
    assert tests_of_nothing("3", browser=False).returncode == 3
    assert tests_of_nothing("3", browser=True).returncode == 3


# the blocks of the README, run


def smaller(name, words):
    """Options that make a command of the README quick."""
    if name == "fairseq-train":
        sizes = ["--encoder-layers", "1", "--decoder-layers", "1", "--num-workers", "0"]
        for part in ("encoder", "decoder"):
            sizes += [f"--{part}-embed-dim", "16", f"--{part}-ffn-embed-dim", "16"]
        return [*words, *sizes, "--cpu", "--max-update", "4", "--warmup-updates", "2"]
    if name in ("fairseq-generate", "fairseq-interactive"):
        return [*words, "--cpu", *NO_WORKERS]
    if words[0] == "pseudo":
        return [*words, "--cpu"]
    return words


def with_interaction(block):
    """The other of the block's two settings, which it has as a comment."""
    first, second = re.findall(r"^#?TRIPLES=.*\n", block, re.M)
    assert (first[0], second[0]) == ("T", "#")
    return block.replace(first + second, second[1:])


@pytest.mark.parametrize("chosen", [str, with_interaction])
def test_the_readmes_blocks_run_from_raw_text_to_bleu_and_on(
    tmp_path, monkeypatch, chosen
):
    """All commands as they stand, with a few options after them."""
    raw = write_texts(
        tmp_path / "raw", {"train": 60, "valid": 5, "test": 9}, opposite=False
    )
    (train,) = map(chosen, code_of(section_of("Train: from raw text to BLEU")))
    interactive, python = code_of(section_of("Translate"))
    names = re.search(r"^RAW=raw +# (.*), a sentence a line$", train, re.M)[1].split()
    assert all((raw / name).exists() for name in names)
    assert len(names) == 6

    source = (raw / "test.en").read_text()
    status, output = run_script(train + interactive, tmp_path, smaller, typed=source)
    assert status == 0, output
    assert re.search(r"^BLEU = \d+\.\d\d   nrefs:1", output, re.M)
    assert re.search(r"^tokenised BLEU = ", output, re.M)
    assert len(lines(output, "D")) == 9
    # what the test set was translated to, sentence by sentence
    tokens = (tmp_path / "work/en-de/test.tok").read_text().splitlines()
    typed = [lines(output, "H")[i][0][-1].replace("@@ ", "") for i in range(9)]
    assert typed == tokens

    monkeypatch.chdir(tmp_path)
    names = {}
    exec(python, names)
    assert names["model"].task.target_dictionary.index("<l2r>") > 3
    assert names["model"].tokenizer.cfg["target_lang"] == "de"


def test_a_block_that_fails_is_noticed(tmp_path):
    block = "sbnmt score --hypothesis none --reference none\nsbnmt --help\n"
    status, output = run_script(block, tmp_path, lambda name, words: words)
    assert status == 2
    assert "none" in output
    assert "usage" not in output
