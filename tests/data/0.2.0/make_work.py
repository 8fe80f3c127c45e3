"""Made work/ and work-rows/ here, at commit 180b74d (0.2.0).

    git checkout 180b74d && scripts/quickstart.sh
    python make_work.py FOLDER             (in an environment of that commit)

Of two finished work folders the names of all files (files.txt), and those whole that
say what was done: work/ is that of examples/toy as quickstart.sh leaves it, work-rows/
that of a tiny recipe with rows in stages, readers and other families.
"""

import re
import shutil
import sys
from pathlib import Path
from unittest import mock

import yaml

if __name__ == "__main__":
    sys.path[:0] = ["tests", "."]
import in_process

from sbnmt_plugin.tools.commands import recipe
from sbnmt_plugin.tools.recipes import runner

ROWS = [
    *["teacher-l2r", "teacher-r2l", "rerank", "sb", "sb@2", "sb+rescored"],
    *["sb-lambda0", "sb-reader-two", "sb-reader", "sb-staged", "sb-staged+rescored"],
    *["sb-same", "sb-own", "sb-late", "sb-finetuned", "abd", "ba", "rnnsearch"],
    *["two-way", "two-way-back", "enat-phrase", "enat-phrase-9", "nart"],
]
STAGES = [
    {"data": "gold", "--max-epoch": 1},
    {"data": "two", "--max-epoch": 1, "--lr": 0.001},
    {"data": "six", "--max-epoch": 2, "--lr": 0.001, "continue": True},
]
SMALL = 40_000  # bytes
SUFFIXES = ".json", ".yaml", ".txt"
LOGGED = re.compile(r"== |.*\| train \| epoch ")  # whence costs are read


def run(folder: Path) -> None:
    """Run the tiny recipe, in this process."""
    path = in_process.write_recipe(
        folder / "recipe",
        stages={"sb-staged": STAGES},
        preprocess=["--joined-dictionary"],
        average=2,
    )
    settings = yaml.safe_load((path / "recipe.yaml").read_text())
    settings["train"]["--keep-last-epochs"] = 2
    for name in "enat-phrase", "nart":
        settings["systems"][name] = {"--share-all-embeddings": None}
    (path / "recipe.yaml").write_text(yaml.safe_dump(settings))
    words = ["sbnmt recipe", str(path), "--work", str(folder / "work"), "--rows", *ROWS]
    with (
        mock.patch.object(runner.Runner, "run", in_process.run),
        mock.patch.object(sys, "argv", words),
    ):
        recipe.main()


def kept(work: Path, name: str) -> bool:
    """Whether a file's text is of use: of a book, a result, a training's costs."""
    path = work / name
    if name.startswith("logs/"):
        return True
    of_text = name.startswith(("text/", "data", "bpe/", "examples/")) or (
        name.startswith("results/") and path.suffix == ".txt"
    )
    return path.suffix in SUFFIXES and path.stat().st_size < SMALL and not of_text


def copy(work: Path, folder: Path) -> None:
    """Copy what is small of a work folder; of logs, the lines that tell costs."""
    names = sorted(
        p.relative_to(work).as_posix() for p in work.rglob("*") if p.is_file()
    )
    folder.mkdir(parents=True)
    (folder / "files.txt").write_text("".join(name + "\n" for name in names))
    for name in filter(lambda name: kept(work, name), names):
        text = (work / name).read_text(encoding="utf-8")
        if name.startswith("logs/"):
            lines = [line for line in text.splitlines() if LOGGED.match(line)]
            text = "".join(line + "\n" for line in lines)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = text.replace(f"{work}", "work").replace(f"{work.parent}", ".")
        path.write_text(text, encoding="utf-8")


def main(folder: Path) -> None:
    """Make both."""
    folder = folder.resolve()
    made = folder / "rows"
    run(made)
    for name, work in (("work", Path("work/toy")), ("work-rows", made / "work")):
        copy(work.resolve(), folder / name)
    shutil.copy("examples/toy/recipe.yaml", folder / "work")
    shutil.copy(made / "recipe" / "recipe.yaml", folder / "work-rows")
    shutil.rmtree(made)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
