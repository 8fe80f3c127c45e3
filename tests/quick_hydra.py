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
chosen: dict[tuple[Any, ...], Any] = {}  # list of defaults by what chooses it
composed: dict[int, Any] = {}  # configuration by the number of its list of defaults
load_anew = ConfigLoaderImpl._load_configuration_impl
compose_anew = ConfigLoaderImpl._compose_config_from_defaults_list
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


def choose(
    repo: Any, config_name: Any, overrides_list: list[Any], **options: Any
) -> Any:
    """Return what create_defaults_list returns."""
    values = [x for x in overrides_list if "." in x.key_or_group]
    choices = [x.input_line for x in overrides_list if "." not in x.key_or_group]
    places = [source.path for source in repo.get_sources()]
    key = (config_name, *choices, None, *places, *options.values())
    if key not in chosen:
        found = create_defaults_list(repo, config_name, overrides_list, **options)
        if [*map(id, found.config_overrides)] != [*map(id, values)]:
            return found
        chosen[key] = found
    again = copy.copy(chosen[key])
    again.config_overrides = values
    return again


def load(self: ConfigLoaderImpl, **options: Any) -> Any:
    """In place of ConfigLoaderImpl._load_configuration_impl, without Hydra's own part.

    Who asks for a configuration by a function, and not by a command, gets none of it.
    """
    if options["from_shell"]:
        return load_anew(self, **options)
    name, overrides = options["config_name"], options["overrides"]
    values, repo = self._parse_overrides_and_create_caching_repo(name, overrides)
    defaults = choose(repo, name, values, prepend_hydra=False, skip_missing=False)
    found = self._compose_config_from_defaults_list(defaults.defaults, repo)
    OmegaConf.set_struct(found, True)
    self._apply_overrides_to_config(defaults.config_overrides, found)
    return found


def compose(self: ConfigLoaderImpl, defaults: list[Any], repo: Any) -> Any:
    """In place of ConfigLoaderImpl._compose_config_from_defaults_list."""
    if not any(defaults is each.defaults for each in chosen.values()):
        return compose_anew(self, defaults, repo)
    if id(defaults) not in composed:
        composed[id(defaults)] = compose_anew(self, defaults, repo)
    return copy.deepcopy(composed[id(defaults)])


def store_anew(self: ConfigStore, *words: Any, **options: Any) -> None:
    """In place of ConfigStore.store: another configuration may be the same no more."""
    chosen.clear()
    composed.clear()
    store(self, *words, **options)


class WithoutSource:
    """In place of the module inspect, whose stack reads the source of every frame."""

    stack = staticmethod(lambda: inspect.stack(0)[1:])
    getfile = staticmethod(inspect.getfile)


OverridesParser.parse_rule = parse_rule
CachingConfigRepository.__init__ = begin
ConfigLoaderImpl._load_configuration_impl = load
ConfigLoaderImpl._compose_config_from_defaults_list = compose
ConfigStore.store = store_anew
utils.inspect = WithoutSource
