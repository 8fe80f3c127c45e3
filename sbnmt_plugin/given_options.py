"""Refusal of options that a user gives where nothing acts on them.

On a command line by its parser, in Hydra's settings, in ``--model-overrides``: the same
table, :data:`fairseq_options.PLACES`, answers for all.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NoReturn

from fairseq.dataclass.configs import FairseqConfig
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from sbnmt_plugin.fairseq_options import (
    GENERATE,
    HYDRA,
    INTERACTIVE,
    OVERRIDES,
    TRAIN,
    USUAL,
    acts,
    refuse,
    refuse_names,
)
from sbnmt_plugin.task_options import KEY, TRAINING, Scope

# fairseq's models that are trained, resumed and decoded as teachers
TEACHERS = ("bart", "lightconv", "lstm", "transformer", "transformer_align")


class Refused(argparse.Action):
    """An option that a parser refuses where it is given another value than its own.

    Attributes:
        say: refuses it, by its flag.
    """

    say: Callable[[str], NoReturn]

    def __call__(self, _: Any, args: Any, value: Any, flag: str | None = None) -> None:
        """Refuse it.

        Raises:
            ValueError: the value is not the default.
        """
        if self.nargs == 0:  # a switch
            value = self.const
        if value not in (self.default, USUAL.get(self.dest, self.default)):
            self.say(str(flag))


def command_of(parser: argparse.ArgumentParser) -> str:
    """Tell which of fairseq's commands a parser is of; "": one that is not known."""
    names = {action.dest for action in parser._actions}
    marks = {"max_update": TRAIN, "buffer_size": INTERACTIVE, "beam": GENERATE}
    return next((marks[mark] for mark in marks if mark in names), "")


def refuse_typed(parser: argparse.ArgumentParser, command: str) -> None:
    """Let a parser refuse what is typed and would do nothing, and not offer it.

    Args:
        command: of :data:`fairseq_options.EVERYWHERE`; "": another one.
    """
    if not command:
        return
    action: Any
    for action in parser._actions:
        if action.dest == "arch" and command == TRAIN:
            # fairseq makes settings of some before there is a task, and fails
            action.__class__ = Judged
        elif action.option_strings and not acts(action.dest, command):
            action.__class__ = Refused
            action.say = partial(refuse, action.dest, command)
            action.choices, action.help = None, argparse.SUPPRESS


def architecture_of(settings: Any) -> str | None:
    """Return the name of the architecture that fairseq builds of a model's settings.

    It is ``_name``, of which a command line's are made; before that ``arch``.
    """
    get = settings.get if isinstance(settings, dict) else partial(getattr, settings)
    name: str | None = get("_name", None) or get("arch", None)
    return name


def check_architecture(settings: Any) -> None:
    """Refuse a model of fairseq's that is none of :data:`TEACHERS`.

    Others run texts of their settings as Python code (``fconv`` its layers), which
    nothing that is read in a checkpoint may be.  Models of a plugin are not judged.

    Raises:
        ValueError: with ``--arch``.
    """
    name = architecture_of(settings)
    kind = ARCH_MODEL_REGISTRY.get(name, MODEL_REGISTRY.get(name))
    known = [MODEL_REGISTRY[name] for name in TEACHERS]
    if kind is None or (kind.__module__.startswith("fairseq.") and kind not in known):
        raise ValueError(
            f"--arch {name} is not supported by sb_translation, which of fairseq's "
            f"models takes {', '.join(TEACHERS)}: choose one, or one of the plugin"
        )


class Judged(argparse._StoreAction):
    """An ``--arch`` to which :func:`check_architecture` is applied."""

    def __call__(self, _: Any, args: Any, value: Any, flag: str | None = None) -> None:
        check_architecture(argparse.Namespace(arch=value))
        setattr(args, self.dest, value)


def refuse_set(root: DictConfig | None) -> None:
    """Refuse what Hydra's settings of a training set and nothing acts on.

    Args:
        root: all groups of settings.

    Raises:
        ValueError: with the first one.
    """
    if root is None or not HydraConfig.initialized():
        return
    for group, option in FairseqConfig.__dataclass_fields__.items():
        if group in REGISTRIES and not acts(group, HYDRA):
            usual = REGISTRIES[group]["default"]
            if (root[group] or {}).get("_name", usual) != usual:
                refuse(group, HYDRA, group)
        for name, field in getattr(option.type, "__dataclass_fields__", {}).items():
            elsewhere = str(field.default).startswith("${")  # it is another group's
            usual = field.default, USUAL.get(name, field.default)
            given = not elsewhere and root[group].get(name) not in usual
            if given and not acts(name, HYDRA):
                refuse(name, HYDRA, f"{group}.{name}")


def overrides_of(root: DictConfig | None) -> dict[str, Any]:
    """Return what ``--model-overrides`` sets; nothing where there are no settings.

    Raises:
        ValueError: it is no dictionary of options.
    """
    text = "{}" if root is None else root.common_eval.model_overrides
    with contextlib.suppress(ValueError, SyntaxError, TypeError):
        found = ast.literal_eval(text)
        if isinstance(found, dict) and all(isinstance(name, str) for name in found):
            return found
    raise ValueError(
        f"{OVERRIDES} must be a dictionary of options, such as "
        f"\"{{'sb_lambda': 0.1}}\", but is {text}: write one, or leave it out"
    )


def refuse_model_settings(model: Any, groups: Any, trained: bool) -> None:
    """Refuse settings of a model that it does not have, or that do nothing any more.

    Args:
        model: its settings: Hydra's, or a checkpoint's.
        groups: all groups of the command's settings; None where there are none.
        trained: whether they are a checkpoint's, which ``--model-overrides`` changes.

    Raises:
        ValueError: with their names; a text in place of a number.
    """
    arch = str(architecture_of(model))
    if groups is not None and trained:
        given = overrides_of(groups)
    elif HydraConfig.initialized() and not trained:
        given = dict.fromkeys(set(model) - {"_name", "arch"})
    else:
        return  # the parser has asked
    where = OVERRIDES if trained else HYDRA
    known = options_of(arch)
    refuse_names(given, known, where, f"use names of the options of {arch}")
    for name, value in given.items():
        if not acts(name, where):
            refuse(name, where, name)
        kind = known[name]
        if kind in (int, float) and not isinstance(value, (kind, int, type(None))):
            words = "a whole number" if kind is int else "a number"
            raise ValueError(f"{name} of {where} must be {words}, but is {value!r}")
    if trained:
        refuse_unread(arch, model, given, where)


def refuse_unread(arch: str, model: Any, given: Collection[str], where: str) -> None:
    """Refuse settings, by their names, that a trained model does not read.

    Raises:
        ValueError: with the first one.
    """
    config = getattr(ARCH_MODEL_REGISTRY.get(arch), "config", None)
    for option in getattr(config, "__dataclass_fields__", {}).values():
        scope: Scope = option.metadata.get(KEY, Scope())
        if option.name in given and scope.phase == TRAINING:
            refuse(option.name, where, option.name)
        if option.name in given and getattr(model, scope.start_of, False):
            raise ValueError(
                f"{option.name} of {where} does nothing with {scope.start_of}, which "
                "learns it: set that to False too, or leave it out"
            )


def options_of(arch: str) -> dict[str, Any]:
    """Return types of an architecture's options; none of one that is not known."""
    parser = argparse.ArgumentParser(add_help=False)
    if arch in ARCH_MODEL_REGISTRY:
        ARCH_MODEL_REGISTRY[arch].add_args(parser)
    return {action.dest: action.type for action in parser._actions}
