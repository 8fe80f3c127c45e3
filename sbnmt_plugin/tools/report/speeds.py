"""Section 5 (Table 6): parameters of checkpoints, speed of training and decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sbnmt_plugin.tools.report.content import Column, Section, Table
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.report.logs import read_train_log
from sbnmt_plugin.tools.text import read_lines
from sbnmt_plugin.tools.translations import read_generate_log

if TYPE_CHECKING:
    from torch import Tensor

NO_PARAMETERS = ("version", "_float_tensor")
TIED = ("embed_tokens.weight", "output_projection.weight")
TITLE = "Parameters and speed"
MISSING = (
    "No logs or checkpoints were given: --checkpoint, --train-log and "
    "--generate-log, each NAME=FILE."
)
NOTE = (
    "Training speed is the median over the intervals of fairseq's log, "
    "decoding speed its last “Translated …” line. Logs do not say on which "
    "machine, nor what else ran there: compare only runs that were made "
    "alike. Training tokens are those of both streams."
)


def count_parameters(weights: dict[str, Tensor]) -> int:
    """Count the parameters among a model's weights, shared ones once.

    Embeddings and the output matrix count once where they are one tensor, or equal
    copies of one, as in files whose writer did not keep the sharing.
    """
    seen: list[Tensor] = []
    total = 0
    for name, value in weights.items():
        if name.endswith(NO_PARAMETERS):
            continue
        if name.endswith(TIED):
            if any(x.shape == value.shape and x.equal(value) for x in seen):
                continue
            seen.append(value)
        total += value.numel()
    return total


def section(given: Inputs) -> Section:
    """Count parameters, and read speeds from logs.

    Raises:
        ValueError: a file is no checkpoint that can be read safely.
    """
    flags = "checkpoint", "train_log", "generate_log"
    checkpoints, trainings, decodings = (given.files.get(flag, {}) for flag in flags)
    known = {*checkpoints, *trainings, *decodings}
    names = [name for name in given.systems if name in known]
    if not names:
        return Section("speeds", TITLE, missing=MISSING)
    from sbnmt_plugin.checkpoints import read_checkpoint  # here: it takes seconds

    rows: list[list[Any]] = []
    for name in names:
        million = ups = wps = None
        speed: dict[str, float] = {}
        if name in checkpoints:
            checkpoint = read_checkpoint(str(checkpoints[name]), "(--checkpoint)")
            million = count_parameters(checkpoint["model"]) / 1e6
        if name in trainings:
            log = read_train_log(read_lines(trainings[name]))
            ups, wps = log.speed("ups"), log.speed("wps")
        if name in decodings:
            speed = read_generate_log(read_lines(decodings[name])) or {}
        decoding = map(speed.get, ("sentences/s", "tokens/s"))
        rows.append([name, million, ups, wps, *decoding])
    table = Table(
        "speeds",
        "Parameters (tied matrices once), training and decoding speed.",
        [
            Column("system"),
            Column("parameters", "million", ",.2f"),
            Column("training", "updates/s", ".2f"),
            Column("training", "tokens/s", ",.0f"),
            Column("decoding", "sentences/s", ",.2f"),
            Column("decoding", "tokens/s", ",.0f"),
        ],
        rows,
    )
    return Section("speeds", TITLE, "As in the paper's Table 6.", [table], notes=[NOTE])
