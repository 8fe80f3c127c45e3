"""fairseq's commands begin sooner in a process that runs many of them.

Each gives all its options, 280 overrides, to Hydra, which copies where it looks for
files, parses every override anew, and puts the same configuration together: half of
what a tiny training takes.  Here what was done before is copied.  An override with a
dot in its name sets a value; the others choose a configuration, and decide which it is.
"""

import copy
import inspect
from typing import Any

from hydra._internal import utils
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository
from hydra._internal.defaults_list import create_defaults_list
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

parsed: dict[tuple[str, str], Any] = {}
parse_anew = OverridesParser.parse_rule
composed: dict[tuple[Any, ...], Any] = {}  # configuration by what chooses it
load_anew = ConfigLoaderImpl._load_configuration_impl
store = ConfigStore.store


def parse_rule(self: OverridesParser, override: str, rule: str) -> Any:
    """In place of OverridesParser.parse_rule."""
    if (override, rule) not in parsed:
        parsed[override, rule] = parse_anew(self, override, rule)
    return copy.deepcopy(parsed[override, rule])


def begin(self: CachingConfigRepository, delegate: Any) -> None:
    """In place of CachingConfigRepository.__init__, which copies the places, too."""
    self.delegate = copy.copy(delegate)
    self.cache = {}


def load(self: ConfigLoaderImpl, **options: Any) -> Any:
    """In place of ConfigLoaderImpl._load_configuration_impl, without Hydra's own part.

    Who asks for a configuration by a function, and not by a command, gets none of it.
    """
    if options["from_shell"]:
        return load_anew(self, **options)
    name = options["config_name"]
    overrides, repo = self._parse_overrides_and_create_caching_repo(
        name, options["overrides"]
    )
    values = [x for x in overrides if "." in x.key_or_group]
    choices = [x.input_line for x in overrides if "." not in x.key_or_group]
    key = (name, *choices, None, *(source.path for source in repo.get_sources()))
    if key not in composed:
        defaults = create_defaults_list(repo, name, overrides, False, False)
        assert [*map(id, defaults.config_overrides)] == [*map(id, values)]
        composed[key] = self._compose_config_from_defaults_list(defaults.defaults, repo)
    found = copy.deepcopy(composed[key])
    OmegaConf.set_struct(found, True)
    self._apply_overrides_to_config(values, found)
    return found


def store_anew(self: ConfigStore, *words: Any, **options: Any) -> None:
    """In place of ConfigStore.store: another configuration may be the same no more."""
    composed.clear()
    store(self, *words, **options)


class WithoutSource:
    """In place of the module inspect, whose stack reads the source of every frame."""

    stack = staticmethod(lambda: inspect.stack(0)[1:])
    getfile = staticmethod(inspect.getfile)


OverridesParser.parse_rule = parse_rule
CachingConfigRepository.__init__ = begin
ConfigLoaderImpl._load_configuration_impl = load
ConfigStore.store = store_anew
utils.inspect = WithoutSource
