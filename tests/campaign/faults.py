"""Commands killed at random moments, repeated, and compared with undisturbed ones."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from campaign.processes import STATUSES, Running, outlived, start
from campaign.subjects import Stage, Subject, results_of

SIGNALS = tuple(STATUSES)
UNFINISHED = (".tmp", ".old", ".cut-off")


@dataclass
class Trial:
    """A subject attacked until it was done all the same.

    Attributes:
        kills: how often, by signal.
        faults: what must not be, in words; none where all is well.
        files: how many were compared.
    """

    subject: str
    kills: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    files: int = 0


class Faults:
    """Kills of the subjects.

    Args:
        folder: to work in.
        seed: of texts, signals and moments.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.draw = random.Random(seed)
        self.stage = Stage(folder / "stage", seed)
        self.count = 0
        self.references: dict[str, tuple[dict[str, str], float]] = {}

    def prepare(self) -> None:
        """Make data and teacher.

        Raises:
            ValueError: it fails; with what is said.
        """
        for words in (
            self.stage.binarise(self.stage.data),
            self.stage.train(self.stage.teacher),
        ):
            self.whole([words])

    def mark(self) -> str:
        """Return the mark of a new attempt."""
        self.count += 1
        return f"{self.folder}:{self.count}"

    def log(self, mark: str, place: int) -> Path:
        return self.folder / "logs" / f"{mark.rpartition(':')[2]}-{place}.log"

    def whole(self, commands: list[list[str]]) -> float:
        """Run commands undisturbed, one after the other.

        Returns:
            Seconds.

        Raises:
            ValueError: one fails; with what it says.
        """
        begun = time.monotonic()
        for place, words in enumerate(commands):
            mark = self.mark()
            running = start(words, self.log(mark, place), mark)
            if running.wait():
                end = running.said()[-2000:]
                raise ValueError(f"undisturbed, {' '.join(words)} fails:\n{end}")
        return time.monotonic() - begun

    def reference(self, subject: Subject) -> tuple[dict[str, str], float]:
        """Return the files that a subject makes undisturbed, and its seconds."""
        if subject.name not in self.references:
            place = self.folder / "reference" / subject.name
            seconds = self.whole(subject.undisturbed(place))
            self.references[subject.name] = results_of(subject, place), seconds
        return self.references[subject.name]

    def attack(self, subject: Subject, kills: int) -> Trial:
        """Kill a subject so many times, in as many folders as it takes."""
        expected, seconds = self.reference(subject)
        trial = Trial(subject.name, files=len(expected))
        place = self.folder / "attacked" / subject.name
        while sum(trial.kills.values()) < kills:
            done = self.disturb(subject, place, subject.span or seconds, trial)
            done = done or subject.done(place)
            if done or sum(trial.kills.values()) == kills:
                self.finish(subject, place, expected, trial)
        return trial

    def disturb(
        self,
        subject: Subject,
        place: Path,
        span: float,
        trial: Trial,
        aimed: bool = False,
    ) -> bool:
        """Run a subject and kill it once.

        Args:
            span: seconds within which it is killed.
            aimed: they begin when it writes.

        Returns:
            Whether it was done before.
        """
        mark, number = self.mark(), self.draw.choice(SIGNALS)
        commands = subject.commands(place)
        hit = self.draw.sample(
            range(len(commands)), self.draw.randint(1, len(commands))
        )
        started = [
            start(words, self.log(mark, i), mark) for i, words in enumerate(commands)
        ]
        if aimed:
            wait_for_change(place, started)
        time.sleep(self.draw.uniform(0, span))
        for i in hit:
            if started[i].process.poll() is None:
                started[i].process.send_signal(number)
                trial.kills[number.name] += 1
            else:
                hit = [other for other in hit if other != i]
        for i, running in enumerate(started):
            status = running.wait()
            allowed = {0, *(STATUSES[number] if i in hit else ())}
            if status not in allowed:
                sent = number.name if i in hit else "no signal"
                trial.faults.append(
                    f"status {status} after {sent}: {running.said()[-1500:]}"
                )
        for words in outlived(mark):
            trial.faults.append(f"outlived {number.name}: {words}")
        return not hit

    def finish(
        self, subject: Subject, place: Path, expected: dict[str, str], trial: Trial
    ) -> None:
        """Let a subject complete, compare what it has made, and begin anew."""
        if not subject.done(place):
            self.complete(subject, place, trial)
        trial.faults += differences(expected, results_of(subject, place))
        trial.faults += [f"left: {path}" for path in unfinished(place)]
        shutil.rmtree(place, ignore_errors=not trial.faults)

    def complete(self, subject: Subject, place: Path, trial: Trial) -> None:
        """Repeat its commands, as a user does, where they have something to do."""
        try:
            self.whole(subject.commands(place))
        except ValueError as error:
            trial.faults.append(f"the repetition fails: {error}")


def wait_for_change(folder: Path, running: list[Running]) -> None:
    """Wait for another file than before, or for nobody to be left to write one."""
    before = set(folder.rglob("*"))
    while set(folder.rglob("*")) == before:
        if all(one.process.poll() is not None for one in running):
            return
        time.sleep(0.005)


def unfinished(folder: Path) -> list[Path]:
    """Return files and folders with temporary names."""
    return [p for p in folder.rglob("*") if p.name.endswith(UNFINISHED)]


def differences(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """Return files that are missing, too many, or not those of an undisturbed run."""
    wrong = [f"missing: {name}" for name in expected.keys() - found.keys()]
    wrong += [f"too many: {name}" for name in found.keys() - expected.keys()]
    same = expected.keys() & found.keys()
    wrong += [f"differs: {n}" for n in same if expected[n] != found[n]]
    return sorted(wrong)
