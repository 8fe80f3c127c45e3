"""Refusal of options of task ``sb_translation`` that would be ignored or misread.

Each is refused by its name, before anything is read or trained.  An option that counts
in some commands, or for some models, says so in the metadata of its field (see
:mod:`task_options`), and :func:`refuse_out_of_scope` is the one loop that asks.
"""

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from fairseq.models import MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks.translation import TranslationConfig
from omegaconf import MISSING

from sbnmt_plugin.config import SBTranslationConfig, task_config
from sbnmt_plugin.fairseq_options import (
    OVERRIDES,
    PLACES,
    PYTHON,
    acts,
    refuse,
    refuse_names,
)
from sbnmt_plugin.given_options import (
    architecture_of,
    options_of,
    overrides_of,
    refuse_unread,
)
from sbnmt_plugin.network.protocol import said
from sbnmt_plugin.search.arguments import check_choice
from sbnmt_plugin.task_options import KEY, TRAINING, Scope, flag_of
from sbnmt_plugin.training.start_checks import groups_of


def refuse_out_of_scope(
    cfg: SBTranslationConfig,
    phase: str = "",
    models: Sequence[Any] = (),
    given: Any = None,
) -> None:
    """Refuse options that are given where they do not count.

    An option is given where it has another value than its default, and that is not
    empty, 0 or False.

    Args:
        phase: of the command, see :class:`task_options.Scope`; "": not known.
        models: of the command, where they are known.
        given: options of one call, which take the place of those of ``cfg``.

    Raises:
        ValueError: with the first such option.
    """
    for option in fields(task_config()):
        scope: Scope = option.metadata.get(KEY, Scope())
        value = getattr(cfg, option.name, None)
        value = getattr(given, option.name, None) or value
        if not value or str(value) == str(option.default):
            continue
        flag = flag_of(option.name)
        if phase and scope.phase not in ("", phase):
            instead = f" ({scope.instead})" if scope.instead else ""
            raise ValueError(
                f"{flag} is for {scope.phase}, not for {phase}: leave it out{instead}"
            )
        if scope.both_directions and str(cfg.sb_direction) != "both":
            raise ValueError(
                f"{flag} needs --sb-direction both: {scope.both_directions}"
            )
        known = [getattr(model, scope.model, False) for model in models if scope.model]
        if known and not any(known):
            raise ValueError(f"{flag} is for {scope.described}: leave it out")


def check_values(cfg: SBTranslationConfig) -> None:
    """Refuse values that would not do what they say.

    Raises:
        ValueError: see the messages.
    """
    for option in fields(TranslationConfig):
        elsewhere = str(option.default).startswith("${")  # it is another group's
        given = not elsewhere and getattr(cfg, option.name) != option.default
        if given and PLACES.get(option.name) == ():
            refuse(option.name, "sb_translation")
    overrides_of(groups_of(cfg))  # fairseq reads them when a model is there
    rate = cfg.sb_partner_noise
    if rate is not None and not 0 <= rate <= 1:
        raise ValueError(f"--sb-partner-noise must be in [0, 1], but is {rate} instead")
    if cfg.sb_probe < 0:
        raise ValueError(f"--sb-probe must be ≥ 0, but is {cfg.sb_probe} instead")


def check_model(cfg: SBTranslationConfig, model: Any, settings: Any) -> None:
    """Refuse a model that does not write in the task's directions, or compute here.

    Args:
        settings: of the model.

    Raises:
        ValueError: a one-directional architecture for two streams or the other way
            round; noise that fairseq computes on a GPU alone; a width that its
            matrix of embeddings has not.
    """
    noise = getattr(settings, "quant_noise_scalar", 0)
    if noise and not torch.cuda.is_available():
        raise ValueError(
            "--quant-noise-scalar must be 0 without a GPU, in training and decoding, "
            f"but is {noise} instead: train without it, or use a GPU"
        )
    width = getattr(settings, "decoder_embed_dim", None)
    narrow = getattr(settings, "decoder_output_dim", width)
    for tied in "share_all_embeddings", "share_decoder_input_output_embed":
        if getattr(settings, tied, False) and str(narrow) != str(width):
            raise ValueError(
                f"--decoder-output-dim {narrow} is not for {flag_of(tied)}, whose "
                f"matrix has --decoder-embed-dim {width}: leave it out"
            )
    wanted = str(cfg.sb_direction)
    name = architecture_of(settings) or "?"
    if wanted == "r2l" and (reason := said(model, "never_r2l")):
        raise ValueError(
            f"--sb-direction r2l is not for {name}, which {reason}: use --sb-direction "
            "l2r"
        )
    if said(model, "bidirectional") != (wanted == "both"):
        known = [n for n, kind in MODEL_REGISTRY.items() if said(kind, "bidirectional")]
        both = " or ".join(f"{name}*" for name in sorted(known, reverse=True))
        needed = f"an {both}" if wanted == "both" else "a one-directional"
        raise ValueError(
            f"--sb-direction {wanted} needs {needed} --arch, but it is {name}"
        )


def check_settings(
    given: set[str], models: Iterable[Mapping[str, Any]], values: Mapping[str, Any]
) -> None:
    """Refuse settings of ``from_pretrained`` that nothing acts on.

    Args:
        given: names of those that the caller gives.
        models: settings of the checkpoints' models.
        values: of settings, by name.

    Raises:
        ValueError: with their names.
    """
    known = {name for name, places in PLACES.items() if PYTHON in places}
    for option in fields(task_config()):
        if KEY in option.metadata and option.metadata[KEY].phase != TRAINING:
            known.add(option.name)
    for settings in models:
        arch = str(architecture_of(settings))
        known |= {name for name in options_of(arch) if acts(name, OVERRIDES)}
        refuse_unread(arch, Namespace(**{**settings, **values}), given, PYTHON)
    for group in ("tokenizer", "bpe"):
        if (kind := values.get(group)) is not None:
            check_choice(group, kind, REGISTRIES[group]["registry"])
            own = REGISTRIES[group]["dataclass_registry"].get(kind)
            options = getattr(own, "__dataclass_fields__", {})  # some have none
            known |= set(options)
            for name, option in options.items():
                if option.default == MISSING and not values.get(name):
                    raise ValueError(
                        f"{group} {kind} needs {name}: give it beside {group}, or "
                        f"leave {group} out"
                    )
    for name in (given - known) & set(PLACES):
        refuse(name, PYTHON, name)
    remedy = "use those of the model, the task, the search and the chosen bpe"
    refuse_names(given, known, "from_pretrained()", remedy)


def check_outputs(
    args: Any, cfg: SBTranslationConfig, datasets: Mapping[str, Any]
) -> None:
    """Refuse what a search cannot take from its texts, or fairseq not print.

    Args:
        args: fairseq's generation options.
        datasets: that are loaded; none where lines are typed.

    Raises:
        ValueError: with the flag.
    """
    targets = [loaded.tgt for loaded in datasets.values()]
    if getattr(args, "prefix_size", 0) > 0 and (not targets or None in targets):
        raise ValueError(
            "--prefix-size takes prefixes from the target texts, but the data has "
            "none: leave it out, or binarise the targets too"
        )
    soft = getattr(args, "print_alignment", None) == "soft"
    if soft and cfg.sb_path and not datasets:
        raise ValueError(
            "--print-alignment must be hard for fairseq-interactive, which prints "
            "pairs of tokens, but is soft instead: use fairseq-generate for that"
        )
