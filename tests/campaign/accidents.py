"""Accidents of a command: no space, no permission, a lost file, a wrong clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from campaign.faults import Faults, Trial, differences, unfinished
from campaign.processes import (
    hindered,
    not_almighty,
    outlived,
    small_files,
    start,
)
from campaign.subjects import Subject, results_of
from sbnmt_plugin.tools.launch import FAIRSEQ

SMALL = 2000  # bytes: less than any checkpoint, and than the longest file of a subject
HOUR = 3600
REFUSED = 2  # exit status of a step for what it says in one line


class Accidents:
    """Accidents, each tried on one subject or more; the command is then repeated.

    Args:
        faults: has stage and folders.
    """

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.subjects = faults.stage.subjects()

    def all(self) -> list[Trial]:
        """Try every accident."""
        trials = []
        for name, limit in (
            ("binarise", 300),
            ("pseudo", 100),
            ("training", SMALL),
        ):
            before = small_files(limit)
            trials.append(self.failing(f"full disk: {name}", name, before))
        for name in ("binarise", "pseudo"):
            title = f"read-only folder: {name}"
            trials.append(self.failing(title, name, not_almighty, read_only=True))
        return [*trials, self.vanishing(), self.second_driver(), self.clock()]

    def failing(
        self,
        title: str,
        name: str,
        before: Callable[[], None],
        read_only: bool = False,
    ) -> Trial:
        """Let a command fail that cannot write, and complete when it can."""
        trial, place = self.failed(title, name, before, read_only)
        return self.completed(self.subjects[name], place, trial)

    def failed(
        self,
        title: str,
        name: str,
        before: Callable[[], None],
        read_only: bool = False,
    ) -> tuple[Trial, Path]:
        """Run a command that cannot write; return its trial and its folder."""
        subject, trial = self.subjects[name], Trial(title)
        place = self.faults.folder / "accidents" / title.replace(":", "")
        place.mkdir(parents=True)
        kept = place / "kept"
        kept.write_text("was here before\n")
        if read_only:
            place.chmod(0o555)
        mark = self.faults.mark()
        (words, *_) = subject.commands(place)
        status, said = hindered(words, mark, before)
        place.chmod(0o755)
        step = not FAIRSEQ.keys() & set(words)
        if status <= 0 or (step and status != REFUSED):
            trial.faults.append(f"status {status}: {said[-1500:]}")
        if step and "Traceback" in said:
            trial.faults.append(f"not one clear error: {said[-1500:]}")
        if kept.read_text() != "was here before\n":
            trial.faults.append("a file of before is damaged")
        trial.faults += [f"outlived: {words}" for words in outlived(mark)]
        kept.unlink()
        return trial, place

    def completed(self, subject: Subject, place: Path, trial: Trial) -> Trial:
        """Repeat a command, and compare its files."""
        expected, _ = self.faults.reference(subject)
        if not subject.done(place):
            self.faults.complete(subject, place, trial)
        trial.files = len(expected)
        trial.faults += differences(expected, results_of(subject, place))
        trial.faults += [f"left: {path}" for path in unfinished(place)]
        return trial

    def vanishing(self) -> Trial:
        """Remove a shard while others are translated."""
        subject = self.subjects["pseudo"]
        trial = Trial("vanishing file: pseudo")
        place = self.faults.folder / "accidents" / trial.subject.replace(":", "")
        mark = self.faults.mark()
        running = [
            start(words, self.faults.log(mark, i), mark)
            for i, words in enumerate(subject.commands(place))
        ]
        while not (shards := sorted(place.glob("*.shards/*.jsonl"))):
            if all(one.process.poll() is not None for one in running):
                break
            time.sleep(0.01)
        for shard in shards:
            shard.unlink(missing_ok=True)
        for one in running:
            if one.wait() not in (0, REFUSED) or "Traceback" in one.said():
                trial.faults.append(f"not one clear error: {one.said()[-1500:]}")
        return self.completed(subject, place, trial)

    def second_driver(self) -> Trial:
        """Start a second driver, which is refused; the first one completes."""
        subject, trial = self.subjects["recipe"], Trial("second driver: recipe")
        place = self.faults.folder / "accidents" / trial.subject.replace(":", "")
        (words,) = subject.commands(place)
        mark = self.faults.mark()
        first = start(words, self.faults.log(mark, 0), mark)
        while not (place / "recipe.json").exists() and first.process.poll() is None:
            time.sleep(0.05)
        second = start(words, self.faults.log(mark, 1), mark)
        if second.wait() != REFUSED or "must not be in use" not in second.said():
            trial.faults.append(f"not refused: {second.said()[-1500:]}")
        if first.wait():
            trial.faults.append(f"the first fails: {first.said()[-1500:]}")
        return self.completed(subject, place, trial)

    def clock(self) -> Trial:
        """Set a clock right, which was an hour fast, while a training is stopped."""
        subject, trial = self.subjects["training"], Trial("clock set back: training")
        _, seconds = self.faults.reference(subject)
        place = self.faults.folder / "accidents" / trial.subject.replace(":", "")
        self.faults.disturb(subject, place, seconds, trial)
        ahead = time.time() + HOUR
        for path in place.rglob("*"):
            os.utime(path, (ahead, ahead))
        return self.completed(subject, place, trial)
