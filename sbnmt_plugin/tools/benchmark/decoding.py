"""Decoding: every system translates the same batches, in turn."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any

from tqdm import tqdm

from sbnmt_plugin.tools.benchmark.models import Spec, made_up_batch, test_batches
from sbnmt_plugin.tools.benchmark.systems import SYSTEMS, Setting, Work, counted_steps
from sbnmt_plugin.tools.benchmark.workers import Worker, timed
from sbnmt_plugin.tools.scoring import tokenised_bleu

BASELINE = "fairseq", "float32"
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


class Station:
    """A system, in its worker.

    Args:
        name, dtype: of :data:`systems.SYSTEMS`, and of its weights.
    """

    def __init__(self, spec: Spec, name: str, dtype: str) -> None:
        self.spec = spec
        self.system = SYSTEMS[name](spec, dtype)

    def prepare(self, case: Case) -> dict[str, int]:
        """Make batches and search; a first run, not timed, that counts steps."""
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
        with counted_steps(loaded.model) as steps:
            self._run()
        return {"steps": steps[0]}

    def _run(self) -> Work:
        return self.system.translate(self.searcher, self.batches)

    def measure(self) -> Row:
        """Translate once."""
        work, seconds, memory = timed(self._run, self.spec.device)
        return {
            "seconds": seconds,
            "memory": memory,
            "sentences": work.sentences,
            "tokens": work.tokens,
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


def run_cases(
    spec: Spec,
    cases: list[Case],
    systems: list[tuple[str, str]],
    rounds: int,
    threads: int,
) -> list[Row]:
    """Measure all systems in all cases.

    Within a case they take turns, in another order every round, so that a machine
    that gets slower is slower for all.

    Returns:
        A row per case and system: medians, extremes, and the ratio of speed to
        :data:`BASELINE`, taken round by round.
    """
    rows: list[Row] = []
    with ExitStack() as stack:
        stations = {
            system: stack.enter_context(
                Worker(
                    "sbnmt_plugin.tools.benchmark.decoding:Station",
                    (spec, *system),
                    threads=threads,
                )
            )
            for system in tqdm(systems, desc="loading", unit="system")
        }
        for case in tqdm(cases, desc="decoding", unit="case"):
            heads = {s: station.ask("prepare", case) for s, station in stations.items()}
            runs: dict[tuple[str, str], list[Row]] = {s: [] for s in systems}
            for number in range(rounds):
                shift = number % len(systems)
                for system in [*systems[shift:], *systems[:shift]]:
                    runs[system].append(stations[system].ask("measure"))
            for system in systems:
                row = summary(runs[system], runs[BASELINE])
                rows.append(
                    {
                        "system": system[0],
                        "dtype": system[1],
                        "batch": case.sentences if case.length else case.batch,
                        "max tokens": None if case.batch else case.tokens,
                        "length": case.length,
                        "beam": case.beam,
                        **heads[system],
                        **row,
                    }
                )
                if case.length is None:
                    rows[-1] |= quality(stations[system])
            if case.length is None:
                compare_texts(rows[-len(systems) :], stations)
    return rows


def summary(runs: list[Row], baseline: list[Row]) -> Row:
    """Medians and extremes of some runs; ratios to the baseline's, pair by pair."""
    seconds = [run["seconds"] for run in runs]
    speeds = [run["sentences"] / run["seconds"] for run in runs]
    ratios = [theirs["seconds"] / ours for ours, theirs in zip(seconds, baseline)]
    memory = max(run["memory"] for run in runs)
    return {
        "sentences/s": median(speeds),
        "sentences/s, least": min(speeds),
        "sentences/s, most": max(speeds),
        "tokens/s": median(run["tokens"] / run["seconds"] for run in runs),
        "seconds": seconds,
        "ratio": median(ratios),
        "ratio, least": min(ratios),
        "ratio, most": max(ratios),
        "memory": memory,
        "memory ratio": memory / max(run["memory"] for run in baseline),
    }


def compare_texts(rows: list[Row], stations: dict[tuple[str, str], Worker]) -> None:
    """Add to narrow numbers which share of the translations float32 gives as well."""
    for row in rows:
        wide = stations.get((row["system"], "float32"))
        if row["dtype"] == "float32" or wide is None:
            continue
        narrow = stations[row["system"], row["dtype"]].ask("texts")
        same = sum(a == b for a, b in zip(narrow, wide.ask("texts")))
        row["as in float32"] = same / len(narrow)


def compare_with_floor(result: Row) -> None:
    """Add to the rows of the floor's case which share of their time it is."""
    case = Case()
    floors = {row["dtype"]: row["seconds"] for row in result["floor"]}
    for row in result.get("decoding", []):
        same = (row["batch"], row["length"], row["beam"]) == (
            case.batch,
            case.length,
            case.beam,
        )
        if same and row["dtype"] in floors and row["system"] != "Rerank-NMT":
            row["of the floor"] = floors[row["dtype"]] / median(row["seconds"])


def quality(station: Worker) -> Row:
    """Tokenised BLEU of what a system has translated."""
    scored = tokenised_bleu(station.ask("texts"), [station.ask("references")])
    return {"BLEU": scored["score"], "signature": scored["signature"]}
