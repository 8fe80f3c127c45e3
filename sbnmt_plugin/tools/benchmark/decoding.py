"""Decoding: every system translates the same batches, in turn."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from sbnmt_plugin.tools.benchmark.models import Spec, made_up_batch, test_batches
from sbnmt_plugin.tools.benchmark.results import Row
from sbnmt_plugin.tools.benchmark.stations import Rounds, Stations, compared, timed
from sbnmt_plugin.tools.benchmark.systems import SYSTEMS, Setting, Text
from sbnmt_plugin.tools.scoring import tokenised_bleu

WIDE = "float32"
BASELINE = "fairseq", WIDE
TEST_SET = "test"  # a case's length in its name, with a recipe's models


@dataclass(frozen=True)
class Case:
    """A cell of the grid.

    Attributes:
        batch: sentences, or None for all that --max-tokens holds.
        tokens: --max-tokens, in source tokens.
        length: of source and of translation, or None for a recipe's test set.
    """

    batch: int | None = 50
    length: int | None = 25
    beam: int = 4
    tokens: int = 4096

    @property
    def sentences(self) -> int:
        """Return how many sentences a made-up batch has."""
        return self.batch or max(1, self.tokens // (self.length or 1))

    def name(self, models: str) -> str:
        """Return ``MODELS-BATCH-LENGTH-BEAM``, as ``base-50-25-4``.

        Args:
            models: a size, or a recipe's folder.
        """
        batch = self.batch or f"t{self.tokens}"
        return f"{models}-{batch}-{self.length or TEST_SET}-{self.beam}"

    @classmethod
    def named(cls, name: str, models: str) -> Case:
        """Return the case of a name.

        Raises:
            ValueError: it is no name of a case with these models.
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


class Counts(TorchDispatchMode):
    """Counts a decoder's steps, and the operators of all that runs meanwhile.

    Args:
        model: whose decoder's last layer runs once a step.

    Attributes:
        steps: of the search.
        operators: that compute or copy; views cost next to nothing.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.steps = self.operators = 0
        self.layer = model.decoder.layers[-1]

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.operators += not function.is_view
        return function(*args, **(kwargs or {}))

    def __enter__(self) -> Counts:
        self.handle = self.layer.register_forward_hook(self._note)
        super().__enter__()
        return self

    def __exit__(self, *reason: Any) -> None:
        super().__exit__(*reason)
        self.handle.remove()

    def _note(self, *_: Any) -> None:
        self.steps += 1


class Station:
    """A system, in its process.

    Args:
        name, dtype: a name of :data:`systems.SYSTEMS`, and the type of its weights.
    """

    def __init__(self, spec: Spec, name: str, dtype: str) -> None:
        self.spec = spec
        self.system = SYSTEMS[name](spec, dtype)

    def prepare(self, case: Case) -> Row:
        """Make batches and search, and run them once without timing.

        Returns:
            The steps of the search and the operators of a step, where our process
            runs them.
        """
        loaded, device = self.system.loaded, self.spec.device
        if case.length is None:
            tokens = None if case.batch else case.tokens
            self.batches = test_batches(loaded.task, device, case.batch, tokens)
        else:
            batch = made_up_batch(loaded.words, case.sentences, case.length, device)
            self.batches = [batch]
        self.searcher = self.system.searcher(Setting(case.beam, case.length))
        if loaded.model is None:
            self.translate()
            return {}
        with Counts(loaded.model) as counts:
            self.translate()
        return {"steps": counts.steps, "operators": counts.operators / counts.steps}

    def translate(self) -> list[Text]:
        """Return the translations of all batches."""
        return self.system.translate(self.searcher, self.batches)

    def measure(self) -> Row:
        """Translate once."""
        found: list[Text] = []
        each: list[float] = []

        def run() -> None:
            for batch in self.batches:
                start = time.perf_counter()
                found.extend(self.system.translate(self.searcher, [batch]))
                each.append(time.perf_counter() - start)

        _, seconds, memory = timed(run, self.spec.device)
        return {
            "seconds": seconds,
            "each": each,
            "memory": memory,
            "sentences": len(found),
            "tokens": sum(len(tokens) for _, tokens in found),
        }

    def texts(self) -> list[str]:
        """Return translations in the test set's order, subwords joined, for BLEU."""
        words = self.system.loaded.words
        return [words.string(tokens, "@@ ") for _, tokens in sorted(self.translate())]

    def references(self) -> list[str]:
        """Return the test set's own translations."""
        task = self.system.loaded.task
        rows = task.dataset("test").tgt
        return [task.target_dictionary.string(row, "@@ ") for row in rows]


def stations_of(spec: Spec, systems: list[tuple[str, str]], threads: int) -> Stations:
    """Return a process for each system: its name, and the type of its weights."""
    place = "sbnmt_plugin.tools.benchmark.decoding:Station"
    return Stations(place, lambda system: [(spec, *system)], systems, threads)


def run_case(stations: Stations, case: Case, rounds: int) -> list[Row]:
    """Measure all systems in a case.

    Returns:
        A row per system: medians, extremes, and the ratio of speed to
        :data:`BASELINE`, taken round by round; or the reason for which it failed.
    """
    heads, runs = stations.measure(rounds, "decoding", case)
    trained = case.length is None
    texts: dict[tuple[str, str], list[str]] = {}
    references: list[str] = []
    if trained:
        for system in stations.systems:
            for found in stations.ask(system, "texts"):
                texts[system] = found
            references = next(iter(stations.ask(system, "references")), references)
    baseline = None if BASELINE in stations.failed else runs[BASELINE]

    def numbers(system: tuple[str, str]) -> Row:
        row = {**heads[system][0], **summary(runs[system], baseline)}
        if trained:
            scored = tokenised_bleu(texts[system], [references])
            row |= {"BLEU": scored["score"], "signature": scored["signature"]}
            wide = texts.get((system[0], WIDE))
            if system[1] != WIDE and wide is not None:
                row["as in float32"] = share_of_same(texts[system], wide)
        return row

    sizes = {
        "batch": case.batch if trained else case.sentences,
        "max tokens": None if case.batch else case.tokens,
        "length": case.length,
        "beam": case.beam,
    }
    return stations.rows(lambda s: {"system": s[0], "dtype": s[1], **sizes}, numbers)


def summary(rounds: Rounds, baseline: Rounds | None) -> Row:
    """Return medians and extremes of some rounds, and ratios to the baseline's."""
    runs = [run for (run,) in rounds]
    speeds = [run["sentences"] / run["seconds"] for run in runs]
    found = {
        "sentences/s": median(speeds),
        "sentences/s, least": min(speeds),
        "sentences/s, most": max(speeds),
        "tokens/s": median(run["tokens"] / run["seconds"] for run in runs),
        **compared(rounds, baseline),
    }
    each = [1000 * one for run in runs for one in run["each"]]
    if len(runs[0]["each"]) == runs[0]["sentences"] > 1:  # batches of one
        found["ms, half"], found["ms, 95 %"] = median(each), quantiles(each, n=20)[-1]
    return found


def share_of_same(narrow: list[str], wide: list[str]) -> float:
    """Return the share of translations that are the same as in float32."""
    return sum(a == b for a, b in zip(narrow, wide)) / len(narrow)
