"""Training examples of a bitext and pseudo targets: triples, or pairs.

They are made when they are asked for, so that a corpus may be larger than the memory.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Iterable

from sbnmt_plugin.tools.text import Lines
from sbnmt_plugin.tools.translations import Translations
from sbnmt_plugin.tools.unfinished import new_file

# the targets of every example of a sentence: l or r by a teacher, g of the bitext
TRIPLES = {
    "one": ("gr",),
    "two": ("lg", "gr"),
    "three": ("lg", "gr", "gg"),
    "six": ("gl", "gr", "lg", "lr", "rg", "rl"),
}
PAIRS = {"pl": ("g", "l"), "pr": ("g", "r"), "pl-pr": ("g", "l", "r"), "kd": ("l",)}
KINDS = TRIPLES | PAIRS
TEACHERS = {"l": "l2r", "r": "r2l"}
Example = tuple[str, ...]  # source, L2R text and, in a triple, R2L text


def teachers_of(kind: str) -> set[str]:
    """Return the directions of the teachers whose texts a kind of examples has."""
    letters = "".join(KINDS[kind])
    return {direction for letter, direction in TEACHERS.items() if letter in letters}


def examples_of(
    kind: str, source: str, gold: str, left: str, right: str
) -> list[Example]:
    """Return the triples, or pairs, of one sentence."""
    texts = {"g": gold, "l": left, "r": right}
    return [(source, *(texts[x] for x in example)) for example in KINDS[kind]]


def identical(example: Example) -> bool:
    """Return whether both texts of a triple are the same."""
    return example[1] == example[-1]


class Corpus:
    """The examples of a text, made when they are asked for.

    Args:
        kind: a name of :data:`TRIPLES` or :data:`PAIRS`.
        source, gold: files of the bitext.
        pseudo: the teachers' files, L2R first, or the only one.

    Raises:
        ValueError: see :class:`Translations`.
    """

    def __init__(self, kind: str, source: str, gold: str, pseudo: list[str]) -> None:
        self.kind = kind
        self.source, self.gold = Lines(source), Lines(gold)
        read = [Translations(path, len(self.source)) for path in pseudo]
        self.left, self.right = read[0], read[-1]  # one and the same, if there is one
        self.each = len(KINDS[kind])
        self.last: tuple[int, list[Example]] = -1, []

    def of_sentence(self, index: int) -> list[Example]:
        """Return all examples of a sentence; those of the last one are kept."""
        if self.last[0] != index:
            texts = (x[index] for x in (self.source, self.gold, self.left, self.right))
            self.last = index, examples_of(self.kind, *texts)
        return self.last[1]

    def example(self, number: int) -> Example:
        """Return an example by its number; untranslated sentences are counted, too."""
        index, place = divmod(number, self.each)
        return self.of_sentence(index)[place]

    def chosen(self, drop_identical: bool) -> tuple[array[int], int]:
        """Return the examples of all sentences that the teachers have translated.

        Returns:
            numbers: those to be written, in the order of the text.
            same: the number of those with identical texts.
        """
        numbers, same = array("q"), 0
        for index in range(len(self.source)):
            if index in self.left and index in self.right:
                for place, example in enumerate(self.of_sentence(index)):
                    same += identical(example)
                    if not (drop_identical and identical(example)):
                        numbers.append(index * self.each + place)
        return numbers, same

    def write(
        self, numbers: Iterable[int], paths: Iterable[str | os.PathLike[str]]
    ) -> None:
        """Write examples: a file for each text, which appear when all are written."""
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(new_file(path)) for path in paths]
            for number in numbers:
                for file, text in zip(files, self.example(number)):
                    file.write(f"{text}\n")
