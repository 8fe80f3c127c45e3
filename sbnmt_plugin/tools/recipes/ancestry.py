"""What a row was made from: its stages, the weights it starts from, its teachers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.row_names import split_name, with_seed
from sbnmt_plugin.tools.recipes.settings import (
    DIRECTIONS,
    PSEUDO,
    same_training,
    teacher_row,
    training_stages,
    trainings,
)
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.systems.system import TEACHER, Options
from sbnmt_plugin.tools.recipes.work_folder import books, same_options, same_teacher


def starting_row(settings: dict[str, Any], name: str) -> str:
    """The row from whose weights a row starts, or nothing; a teacher is of seed 1."""
    base, seed = split_name(name)
    row = SYSTEMS[base].starts_from
    if row.removeprefix(TEACHER) in DIRECTIONS:
        row, seed = teacher_row(settings, row.removeprefix(TEACHER)), 1
    return same_training(settings, with_seed(row, seed)) if row else ""


def own_books(settings: dict[str, Any], name: str) -> list[Options]:
    """What the folders of a row's stages keep: see :func:`books`."""
    start = starting_row(settings, name)
    before = own_books(settings, start)[-1] if start else None
    return books(training_stages(settings, name), before)


def teacher_book(settings: dict[str, Any], direction: str) -> Options:
    """The options of a teacher, by which pseudo targets know it."""
    row = teacher_row(settings, direction)
    return own_books(settings, same_training(settings, row))[-1]


def pseudo_targets(work: Path, direction: str) -> Path:
    """Their file."""
    return work / "pseudo" / f"{direction}.tsv"


def check_row(work: Path, settings: dict[str, Any], name: str) -> None:
    """What is there of a row belongs to the recipe: the models with which it decodes,
    those that they start from, and the pseudo targets that these have learned from.

    Raises:
        ValueError: as :func:`same_options` and :func:`same_teacher`.
    """
    base, _ = split_name(name)
    if SYSTEMS[base].remedy:  # its options are not known any more
        return
    for row in trainings(settings, name):
        stages = training_stages(settings, row)
        for stage, options in zip(stages, own_books(settings, row)):
            if (work / stage.name / "options.json").exists():
                same_options(work / stage.name, options)
            for direction in PSEUDO[stage.data]:
                texts = pseudo_targets(work, direction)
                same_teacher(texts, teacher_book(settings, direction))
        if start := starting_row(settings, row):
            check_row(work, settings, start)
