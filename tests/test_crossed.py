"""examples/multi30k/crossed.sh: pseudo targets by teachers that have not seen them."""

import os
import subprocess
from pathlib import Path

import bash_stubs
import pytest
from commands import ROOT, captured
from steps import call, put

from sbnmt_plugin.tools.commands import recipe

SCRIPT = ROOT / "examples" / "multi30k" / "crossed.sh"
# programs that do what the script needs of them: a "model" is the text it was trained
# on, a "translation" says whether its sentence was there
PROGRAMS = {
    "fairseq-train": """
        data=$1 words=("$@")
        while [[ $1 != --save-dir ]]; do shift; done
        mkdir -p "$2"
        cp "$data/text" "$2/checkpoint_best.pt"
        printf '%s\\n' "${words[@]}" >"$2/words"
        """,
    "sbnmt": """
        what=$1
        [[ $what == recipe ]] && exec cat "${0%/venv/*}/run.sh"
        while (($#)); do
          case $1 in
            --trainpref | --destdir | --path | --input | --output)
              name=${1#--}; declare "$name=$2"; shift ;;
          esac
          shift
        done
        if [[ $what == binarise ]]; then
          mkdir "$destdir"
          cp "$trainpref.en" "$destdir/text"
        else
          number=0
          while read -r line; do
            seen=new
            grep -qxF "$line" "$path" && seen=seen
            printf '%s\\t-1.5\\t%s %s\\n' "$number" "$line" "$seen"
            ((number += 1))
          done <"$input" >"$output"
        fi
        """,
}


def print_run(folder: Path) -> Path:
    """Write the script that the recipe prints of its small setting."""
    with captured() as output:
        call(recipe, "multi30k", "--small", "--print")
    return put(folder / "run.sh", output.text.rstrip("\n"))


def crossed(text: str, folder: Path) -> list[str]:
    """Run a form of the script; its L2R pseudo targets."""
    programs, work = folder / "venv" / "bin", folder / "work"
    programs.mkdir(parents=True)
    for name, body in PROGRAMS.items():
        (programs / name).write_text(f"#!/usr/bin/env bash\nset -eu\n{body}")
        (programs / name).chmod(0o755)
    (work / "bpe").mkdir(parents=True)
    sentences = [f"sentence {i}\n" for i in range(25)]
    for end in "en", "de":
        (work / "bpe" / f"train.{end}").write_text("".join(sentences))
    script = folder / "examples" / "multi30k" / "crossed.sh"
    script.parent.mkdir(parents=True)
    script.write_text(text)
    print_run(folder)
    environment = {**os.environ, "VENV": str(programs.parent)}
    for _ in range(2):  # the second finds all of it done
        words = ["bash", str(script), str(work), str(folder / "crossed")]
        subprocess.run(words, check=True, env=environment, capture_output=True)
    made = folder / "crossed" / "pseudo"
    assert (made / "r2l.tsv").read_text() == (made / "l2r.tsv").read_text()
    assert (made / "train.en").read_text() == "".join(sentences)
    return (made / "l2r.tsv").read_text().splitlines()


def test_every_sentence_is_translated_by_a_teacher_that_has_not_seen_it(tmp_path):
    text = SCRIPT.read_text(encoding="utf-8")
    expected = [f"{i}\t-1.5\tsentence {i} new" for i in range(25)]
    assert crossed(text, tmp_path / "own") == expected


@pytest.mark.parametrize(
    ("right", "wrong", "finds"),
    [
        ("other=$((1 - $1))", "other=$1", "seen"),
        ("+ 2 * half", "+ 2 - 2 * half", "2\t-1.5\tsentence 0 new"),
    ],
)
def test_another_script_would_be_found(right, wrong, finds, tmp_path):
    text = SCRIPT.read_text(encoding="utf-8")
    assert text.count(right) == 1
    lines = crossed(text.replace(right, wrong), tmp_path)
    assert any(finds in line for line in lines)


def test_its_teachers_are_trained_as_the_recipe_s(tmp_path):
    crossed(SCRIPT.read_text(encoding="utf-8"), tmp_path / "own")
    noted_words = tmp_path / "own" / "crossed" / "teacher-r2l-1" / "words"
    ours = ["", *noted_words.read_text().splitlines()[1:]]
    noted = bash_stubs.noted(
        print_run(tmp_path), tmp_path / "run", tmp_path / "work", tmp_path
    )
    trained = next(words for words in noted if words[0] == "fairseq-train")

    def compared(words):
        own = ("--save-dir", "--sb-direction")
        units = bash_stubs.options(words)[1:]
        return [unit for unit in units if unit[0] not in own]

    assert compared(ours) == compared(trained)
    assert compared([*ours, "--lr", "0.004"]) != compared(trained)
