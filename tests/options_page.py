"""The page docs/options.md, from the parsers of the plugin's options.

python tests/options_page.py        writes it anew
"""

import dataclasses
import re
from enum import Enum
from pathlib import Path

from fairseq.models import ARCH_MODEL_REGISTRY

from sbnmt_plugin.config import task_config
from sbnmt_plugin.families.abd.model import ABDTransformerModel
from sbnmt_plugin.families.ba.model import RNNSearchConfig, RNNSearchModel
from sbnmt_plugin.families.enat.model import ENATConfig, ENATModel
from sbnmt_plugin.families.sb.model import SBTransformerConfig, SBTransformerModel
from sbnmt_plugin.families.two_way.decoder import TwoWayConfig
from sbnmt_plugin.families.two_way.model import TwoWayModel
from sbnmt_plugin.task_options import DECODING, KEY, TRAINING

PAGE = Path(__file__).resolve().parents[1] / "docs" / "options.md"
OURS = "sb_", "ba_", "two_way_", "enat_", "nat_"
MODELS = {  # the option group of a model, and the architectures that have it
    "SB-NMT": (SBTransformerConfig, [SBTransformerModel]),
    "ABD-NMT": (None, [ABDTransformerModel]),
    "BA-NMT": (RNNSearchConfig, [RNNSearchModel]),
    "Two-way": (TwoWayConfig, [TwoWayModel]),
    "ENAT": (ENATConfig, [ENATModel]),
}
LETTER = re.compile("([A-Z]): ")  # what a help text calls the value
PHASES = {  # heading -> where the options of the task count
    "Training and decoding": "",
    "Training alone": TRAINING,
    "Decoding alone": DECODING,
}
INTRODUCTION = """\
# Options

The plugin adds these options to `fairseq-train`, `fairseq-generate` and
`fairseq-interactive`, defaults in brackets. `python tests/options_page.py` writes this
page. fairseq's `--help` does not show them. Options of a model are saved in its
checkpoint.
"""
OF_FAIRSEQ = """\
## How do fairseq's options behave here?

* `--beam` of SB-NMT counts the hypotheses of both directions together. It is even. Of
  fairseq's default, 5, SB-NMT takes 4. In ENAT it counts lengths.
* `--max-tokens` counts, per sentence, the source or the target, whichever is longer. Of
  SB-NMT and ABD-NMT, which have two targets, twice the longer one.
* `--lenpen` is 1 by default, in the paper 0.6. Repeat it in `--eval-bleu-args`.
* `--prefix-size` binds the L2R half. An R2L hypothesis must end up with that prefix.
* Lines `H-` and `P-` print log probabilities in base 2.
* Every command but fairseq-validate refuses an option without effect, by its name
  ([list](../sbnmt_plugin/fairseq_options.py)).
"""


def flag_of(option):
    """Return an option's flag."""
    return "--" + option.name.replace("_", "-")


def options_of(config):
    """Yield the plugin's own options of a dataclass, as fairseq's parser has them."""
    for option in dataclasses.fields(config):
        if option.name.startswith(OURS) and "help" in option.metadata:
            yield option


def value_of(option):
    """Return what stands behind the flag: choices, a letter, or nothing."""
    if option.type is bool:
        return ""
    if isinstance(option.type, type) and issubclass(option.type, Enum):
        return " {" + ",".join(map(str, option.type)) + "}"
    letter = LETTER.match(option.metadata["help"])
    if letter:
        return f" {letter[1]}"
    kinds = {"str": " FILE", "float": " X", "int": " N"}
    return next(shown for kind, shown in kinds.items() if kind in str(option.type))


def default_of(option):
    """Return an option's default as the page shows it; nothing where it has none."""
    if option.default is None:
        return ""
    return f" ({'off' if option.default is False else option.default})"


def meaning_of(option):
    """Return an option's help as Markdown."""
    text = LETTER.sub("", option.metadata["help"]).replace("*", r"\*")
    return re.sub(r"(--[a-z][\w-]*\w(?: (?:gate|phrase|l2r|1)\b)?)", r"`\1`", text)


def lines_of(options):
    """Return a line for each option."""
    for x in options:
        yield f"* `{flag_of(x)}{value_of(x)}`{default_of(x)}: {meaning_of(x)}"


def architectures(models):
    """Return the names of all architectures of some models, the shortest first."""
    names = [x for x, model in ARCH_MODEL_REGISTRY.items() if model in models]
    return sorted(names, key=lambda name: (len(name), name))


def page():
    """Return the whole page."""
    parts = [INTRODUCTION]
    for name, (config, models) in MODELS.items():
        shown = ", ".join(f"`{arch}`" for arch in architectures(models))
        parts.append(f"## {name}\n\n`--arch`: {shown}.\n")
        if config:
            parts.append("\n".join([*lines_of(options_of(config)), ""]))
    for heading, phase in PHASES.items():
        options = [
            x for x in options_of(task_config()) if x.metadata[KEY].phase == phase
        ]
        parts.append("\n".join([f"## {heading}", "", *lines_of(options), ""]))
    return "\n".join([*parts, OF_FAIRSEQ])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
