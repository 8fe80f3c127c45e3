"""Decoding: every system translates the same batches, in turn."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import Any

from tqdm import tqdm

from sbnmt_plugin.tools.benchmark.models import Spec, made_up_batch, test_batches
from sbnmt_plugin.tools.benchmark.results import FAILED, ratios
from sbnmt_plugin.tools.benchmark.systems import SYSTEMS, Counts, Setting, Work
from sbnmt_plugin.tools.benchmark.workers import Failure, Worker, timed
from sbnmt_plugin.tools.scoring import tokenised_bleu

WIDE = "float32"
BASELINE = "fairseq", WIDE
TEST_SET = "test"  # a case's length in its name, with a recipe's models
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A cell of the grid.

    Attributes:
        batch: sentences, or None for all that --max-tokens holds.
        tokens: of --max-tokens, source tokens.
        length: of source and of translation, or None for a recipe's test set.
    """

    batch: int | None = 50
    length: int | None = 25
    beam: int = 4
    tokens: int = 4096

    @property
    def sentences(self) -> int:
        """Sentences of a made-up batch."""
        return self.batch or max(1, self.tokens // (self.length or 1))

    def name(self, models: str) -> str:
        """``MODELS-BATCH-LENGTH-BEAM``, as ``base-50-25-4`` or ``toy-t4096-test-4``.

        Args:
            models: a size, or a recipe's folder.
        """
        batch = self.batch or f"t{self.tokens}"
        return f"{models}-{batch}-{self.length or TEST_SET}-{self.beam}"

    @classmethod
    def named(cls, name: str, models: str) -> Case:
        """The case of a name.

        Raises:
            ValueError: it is none of these models'.
        """
        number = r"([1-9]\d*)"
        form = rf"{re.escape(models)}-(t?){number}-(?:{number}|{TEST_SET})-{number}"
        found = re.fullmatch(form, name)
        if found is None:
            raise ValueError(
                f"a case of decoding must be {models}-BATCH-LENGTH-BEAM, as "
                f"{cls().name(models)}, or with --work "
                f"{cls(length=None).name(models)}, but is {name}"
            )
        tokens, size, length, beam = found.groups()
        case = cls(length=int(length) if length else None, beam=int(beam))
        if tokens:
            return replace(case, batch=None, tokens=int(size))
        return replace(case, batch=int(size))


class Station:
    """A system, in its worker.

    Args:
        name, dtype: of :data:`systems.SYSTEMS`, and of its weights.
    """

    def __init__(self, spec: Spec, name: str, dtype: str) -> None:
        self.spec = spec
        self.system = SYSTEMS[name](spec, dtype)

    def prepare(self, case: Case) -> Row:
        """Make batches and search; a first run, not timed, that counts steps, and the
        operators in each."""
        loaded, device = self.system.loaded, self.spec.device
        if case.length is None:
            tokens = None if case.batch else case.tokens
            self.batches = test_batches(loaded.task, device, case.batch, tokens)
        else:
            batch = made_up_batch(loaded.words, case.sentences, case.length, device)
            self.batches = [batch]
        self.searcher = self.system.searcher(Setting(case.beam, case.length))
        if loaded.model is None:
            self._run()
            return {}
        with Counts(loaded.model) as counts:
            self._run()
        return {
            "steps": counts.steps,
            "operators": counts.operators / counts.steps,
        }

    def _run(self) -> Work:
        return self.system.translate(self.searcher, self.batches)

    def measure(self) -> Row:
        """Translate once."""
        works: list[Work] = []
        each: list[float] = []

        def run() -> None:
            for batch in self.batches:
                start = time.perf_counter()
                works.append(self.system.translate(self.searcher, [batch]))
                each.append(time.perf_counter() - start)

        _, seconds, memory = timed(run, self.spec.device)
        return {
            "seconds": seconds,
            "each": each,
            "memory": memory,
            "sentences": sum(work.sentences for work in works),
            "tokens": sum(work.tokens for work in works),
        }

    def texts(self) -> list[str]:
        """Translations in the test set's order, subwords joined, for BLEU."""
        words = self.system.loaded.words
        found = sorted(self._run().texts)
        return [words.string(tokens, "@@ ") for _, tokens in found]

    def references(self) -> list[str]:
        """The test set's own."""
        task = self.system.loaded.task
        rows = task.dataset("test").tgt
        return [task.target_dictionary.string(row, "@@ ") for row in rows]


class Stations:
    """All systems' workers; one that fails is out of its case, then opened anew.

    Args:
        systems: names and types of numbers.
        threads: of each.
    """

    def __init__(
        self, spec: Spec, systems: list[tuple[str, str]], threads: int
    ) -> None:
        self.spec = spec
        self.systems = systems
        self.threads = threads
        self.workers: dict[tuple[str, str], Worker] = {}
        self.failed: dict[tuple[str, str], str] = {}  # in this case
        self.missing: dict[tuple[str, str], str] = {}  # cannot be had at all

    def begin(self) -> None:
        """Before a case: open what is not there."""
        self.failed = dict(self.missing)
        closed = [s for s in self.systems if s not in {**self.workers, **self.missing}]
        for system in closed:
            self.workers[system] = Worker(
                "sbnmt_plugin.tools.benchmark.decoding:Station",
                (self.spec, *system),
                threads=self.threads,
                wait=False,
            )
        for system in tqdm(closed, desc="loading", unit="system", leave=False):
            try:
                self.workers[system].receive()
            except Failure as failure:
                self._drop(system, failure)
                self.missing[system] = failure.reason

    def ask(self, system: tuple[str, str], method: str, *words: Any) -> Any:
        """What a system answers; None if it fails now, or has failed in this case."""
        if system in self.failed:
            return None
        try:
            return self.workers[system].ask(method, *words)
        except Failure as failure:
            self._drop(system, failure)
            return None

    def _drop(self, system: tuple[str, str], failure: Failure) -> None:
        """Note why a system is out, and end its process."""
        self.failed[system] = failure.reason
        tqdm.write(f"{', '.join(system)} failed: {failure}", file=sys.stderr)
        if system in self.workers:
            self.workers.pop(system).close()

    def __enter__(self) -> Stations:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """End all of them; a further case opens them anew."""
        while self.workers:
            self.workers.popitem()[1].close()


def run_case(stations: Stations, case: Case, rounds: int) -> list[Row]:
    """Measure all systems in a case.

    They take turns, in another order every round, so that a machine that gets slower
    is slower for all.

    Returns:
        A row per system: medians, extremes, and the ratio of speed to
        :data:`BASELINE`, taken round by round; or the reason for which it failed.
    """
    stations.begin()
    systems = stations.systems
    heads = {s: stations.ask(s, "prepare", case) for s in systems}
    runs: dict[tuple[str, str], list[Row]] = {s: [] for s in systems}
    for number in tqdm(range(rounds), desc="decoding", unit="round", leave=False):
        shift = number % len(systems)
        for system in [*systems[shift:], *systems[:shift]]:
            runs[system].append(stations.ask(system, "measure"))
    trained = case.length is None
    texts: dict[tuple[str, str], Any] = {}
    references: list[str] = []
    if trained:
        texts = {s: stations.ask(s, "texts") for s in systems}
        given = [stations.ask(s, "references") for s in systems]
        references = next(filter(None, given), [])
    rows = []
    for system in systems:
        row: Row = {
            "system": system[0],
            "dtype": system[1],
            "batch": case.batch if trained else case.sentences,
            "max tokens": None if case.batch else case.tokens,
            "length": case.length,
            "beam": case.beam,
        }
        rows.append(row)
        if system in stations.failed:
            row[FAILED] = stations.failed[system]
            continue
        baseline = None if BASELINE in stations.failed else runs[BASELINE]
        row |= {**heads[system], **summary(runs[system], baseline)}
        if trained:
            row |= quality(texts[system], references)
            wide = texts.get((system[0], WIDE))
            if system[1] != WIDE and wide is not None:
                row["as in float32"] = share_of_same(texts[system], wide)
    return rows


def summary(runs: list[Row], baseline: list[Row] | None) -> Row:
    """Medians and extremes of some runs; ratios to the baseline's, pair by pair."""
    seconds = [run["seconds"] for run in runs]
    speeds = [run["sentences"] / run["seconds"] for run in runs]
    memory = max(run["memory"] for run in runs)
    found = {
        "sentences/s": median(speeds),
        "sentences/s, least": min(speeds),
        "sentences/s, most": max(speeds),
        "tokens/s": median(run["tokens"] / run["seconds"] for run in runs),
        "seconds": seconds,
        "memory": memory,
    }
    each = [1000 * one for run in runs for one in run["each"]]
    if len(runs[0]["each"]) == runs[0]["sentences"] > 1:  # batches of one
        found["ms, half"], found["ms, 95 %"] = median(each), quantiles(each, n=20)[-1]
    if baseline is None:
        return found
    theirs = [run["seconds"] for run in baseline]
    peak = max(run["memory"] for run in baseline)
    return {**found, **ratios(seconds, theirs), "memory ratio": memory / peak}


def share_of_same(narrow: list[str], wide: list[str]) -> float:
    """Which share of the translations float32 gives as well."""
    return sum(a == b for a, b in zip(narrow, wide)) / len(narrow)


def quality(texts: list[str], references: list[str]) -> Row:
    """Tokenised BLEU of what a system has translated."""
    scored = tokenised_bleu(texts, [references])
    return {"BLEU": scored["score"], "signature": scored["signature"]}
