"""fairseq's commands begin sooner in a process that runs many of them.

Each gives all its options, 280 overrides, to Hydra, which copies where it looks for
files and parses every one anew: half of the half second before a command begins.  Here
an override that was parsed before is copied, and so is the list of places alone.
"""

import copy
from typing import Any

from hydra._internal.config_repository import CachingConfigRepository
from hydra.core.override_parser.overrides_parser import OverridesParser

parsed: dict[tuple[str, str], Any] = {}
parse_anew = OverridesParser.parse_rule


def parse_rule(self: OverridesParser, override: str, rule: str) -> Any:
    """In place of OverridesParser.parse_rule."""
    if (override, rule) not in parsed:
        parsed[override, rule] = parse_anew(self, override, rule)
    return copy.deepcopy(parsed[override, rule])


def begin(self: CachingConfigRepository, delegate: Any) -> None:
    """In place of CachingConfigRepository.__init__, which copies the places, too."""
    self.delegate = copy.copy(delegate)
    self.cache = {}


OverridesParser.parse_rule = parse_rule
CachingConfigRepository.__init__ = begin
