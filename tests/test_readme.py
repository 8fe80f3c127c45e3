"""What the commands of README and guide do: raw text to BLEU, and the tests."""

import ast
import os
import re
import shlex
import sys
from pathlib import Path

import in_process
from commands import ROOT, captured, lines, write_texts
from pages import code_of, text_of
from shell import run_script
from steps import ran

# the README's quick path, run


def code_under(page, heading):
    """Return the code of a section of a page."""
    return code_of(text_of(page).split(f"\n## {heading}\n")[1].split("\n## ")[0])


def command_of(blocks, step):
    """Return the first command of some blocks that runs a step."""
    found = [x.strip() for x in "".join(blocks).splitlines()]
    return next(x for x in found if x.startswith(f"sbnmt {step} "))


def test_the_readmes_commands_train_on_raw_text_and_translate_it(tmp_path, monkeypatch):
    """One to train, with options that make it quick, and two ways to translate."""
    write_texts(tmp_path / "raw", {"train": 120, "valid": 8, "test": 8}, opposite=False)
    monkeypatch.chdir(tmp_path)
    train = command_of(code_under("README.md", "Train on your text"), "recipe")
    _, _, name, *words = shlex.split(train)
    python, *shell = code_under("README.md", "Translate")
    sizes = [f"--{part}-layers=1" for part in ("encoder", "decoder")]
    in_process.make(ROOT / "examples" / name, *words, *sizes, "--updates", 4)

    Path("input.en").write_text("Two dogs play in the snow.\n\nw1 w2\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    translate = command_of(shell, "translate")
    done = ran(["bash", "-c", translate], env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    first, empty, last = Path("output.de").read_text().splitlines()
    assert not empty

    names = {}
    with captured() as printed:
        exec(python, names)
    assert ast.literal_eval(printed.text)[0] == first
    assert names["model"].translate(["", "w1 w2"]) == ["", last]
    assert names["model"].description.source.tokeniser == "moses"


# the blocks of the guide, run


def smaller(name, words):
    """Options that make a command of the guide quick."""
    if name == "fairseq-train":
        sizes = ["--encoder-layers", "1", "--decoder-layers", "1", "--num-workers", "0"]
        for part in ("encoder", "decoder"):
            sizes += [f"--{part}-embed-dim", "16", f"--{part}-ffn-embed-dim", "16"]
        return [*words, *sizes, "--cpu", "--max-update", "4", "--warmup-updates", "2"]
    if name in ("fairseq-generate", "fairseq-interactive"):
        return [*words, "--cpu"]
    if words[0] == "pseudo":
        return [*words, "--cpu"]
    return words


def test_the_guides_blocks_run_from_raw_text_to_bleu_and_on(tmp_path, monkeypatch):
    """All commands as they stand, with a few options after them."""
    raw = write_texts(
        tmp_path / "raw", {"train": 60, "valid": 5, "test": 9}, opposite=False
    )
    heading = "What does the recipe do, step by step?"
    train, folder, interactive, python = code_under("docs/guide.md", heading)
    names = re.search(r"^RAW=raw +# (.*), a sentence a line$", train, re.M)[1].split()
    assert all((raw / name).exists() for name in names)
    assert len(names) == 6

    source = (raw / "test.en").read_text()
    # the other of its two settings stands in a comment
    assert re.search(r"^TRIPLES=.*\n#TRIPLES=.* 0\.1\)$", train, re.M)
    (adapt,) = code_under("docs/guide.md", "How do I adapt a model to other text?")
    assert adapt.startswith("NEW=new    # train.en train.de valid.en valid.de\n")
    (tmp_path / "new").symlink_to(raw)
    block = train + folder + interactive + adapt
    status, output = run_script(block, tmp_path, smaller, typed=source)
    assert status == 0, output
    assert re.search(r"^BLEU = \d+\.\d\d   nrefs:1", output, re.M)
    assert re.search(r"^tokenised BLEU = ", output, re.M)
    assert len(lines(output, "D")) == 9
    # what the test set was translated to, sentence by sentence
    work = tmp_path / "work" / "en-de-by-hand"
    tokens = (work / "test.tok").read_text().splitlines()
    typed = [lines(output, "H")[i][0][-1].replace("@@ ", "") for i in range(9)]
    assert typed == tokens
    # and by the model folder, from raw text to raw text
    assert (work / "test.translated").read_text() == (work / "test.txt").read_text()
    assert (work / "adapted-model" / "model.yaml").exists()

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
