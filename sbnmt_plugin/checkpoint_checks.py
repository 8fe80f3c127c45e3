"""Checks that a checkpoint is one for the command that reads it.

Its task, its directions, its dictionaries, its languages: what a training has left of
them in the checkpoint must agree with what the command says.
"""

from __future__ import annotations

import logging
import zlib
from argparse import Namespace
from collections.abc import Collection, Sequence
from typing import Any

from fairseq.models import ARCH_MODEL_REGISTRY

from sbnmt_plugin.checkpoints import OPTIONS, Checkpoint, read_checkpoint, settings_of
from sbnmt_plugin.given_options import architecture_of
from sbnmt_plugin.symbols import TAGS

logger = logging.getLogger(__name__)

# settings by which the same weights compute something else; ties, by which one matrix
# takes the place of others
FUNCTION = (
    *("activation_fn", "no_scale_embedding", "no_token_positional_embeddings"),
    *("encoder_attention_heads", "encoder_normalize_before"),
    *("decoder_attention_heads", "decoder_normalize_before"),
)
TIES = "share_all_embeddings", "share_decoder_input_output_embed"


def check_interface(checkpoint: Checkpoint, given: Collection[str]) -> None:
    """Refuse, for Python's interface, a checkpoint that itself chooses what is read.

    fairseq takes task, tokeniser and subwords from the checkpoint there.

    Args:
        given: names of the settings that the caller has chosen.

    Raises:
        ValueError: another task, or a file for tokeniser or subwords.
    """
    path, settings = checkpoint.path, checkpoint.cfg
    name = (settings.get("task") or {}).get("_name", "sb_translation")
    if name != "sb_translation":
        raise ValueError(
            f"{path} must have been trained by --task sb_translation, but was by {name}"
        )
    for group in ("tokenizer", "bpe"):
        chosen = settings.get(group) or {}
        values = vars(chosen) if hasattr(chosen, "__dict__") else dict(chosen)
        for key, value in values.items():
            if group not in given and key != "_name" and isinstance(value, str):
                raise ValueError(
                    f"{path} must not choose what is read, but says {group} "
                    f"{values.get('_name')} with {key} {value}: give {group} yourself, "
                    f"or {group}=None"
                )


def check_checkpoints(paths: list[str], options: str = OPTIONS) -> list[Checkpoint]:
    """Read files, each once, and refuse those that are no checkpoints, or no ensemble.

    Args:
        options: that may have named them, for the messages.

    Raises:
        FileNotFoundError, ValueError: see :func:`checkpoints.read_checkpoint`; their
            models write in different directions.
    """
    found = []
    for path in paths:
        checkpoint = read_checkpoint(path, options)
        shapes = {name: value.shape for name, value in checkpoint["model"].items()}
        cfg = checkpoint.get("cfg") or {}
        found.append(Checkpoint(path, cfg, settings_of(checkpoint), shapes))
    directions = {each.path: each.settings.get("sb_direction") for each in found}
    if len(set(directions.values())) > 1:
        listed = ", ".join(f"{path}: {value}" for path, value in directions.items())
        raise ValueError(
            "the models of an ensemble must have been trained with one --sb-direction, "
            f"but were not ({listed}): translate with those of one direction"
        )
    return found


def check_direction(saved: Any, wanted: str, from_checkpoint: bool) -> None:
    """Refuse a model that was trained to write in other directions.

    Args:
        saved: ``--sb-direction`` of the training; None where it had another task.
        wanted: that of the command.
        from_checkpoint: whether there has been a training.

    Raises:
        ValueError: they differ.
    """
    if from_checkpoint and saved is None:
        raise ValueError(
            "the checkpoint was not trained by --task sb_translation: decode it "
            "with its own task (--task translation for fairseq's models)"
        )
    if saved is not None and str(saved) != wanted:
        raise ValueError(
            f"the checkpoint was trained with --sb-direction {saved}, but the "
            f"command says {wanted}: add --sb-direction {saved}"
        )


def check_goes_on(start: Checkpoint, wanted: str) -> None:
    """Refuse that a training goes on from another system's checkpoint.

    Args:
        wanted: ``--sb-direction`` of the command.

    Raises:
        ValueError: it was trained by another task, or in another direction.
    """
    saved = start.settings.get("sb_direction")
    if saved is None or str(saved) != wanted:
        how = f"with --sb-direction {saved}" if saved else "by another task"
        raise ValueError(
            f"{start.path} must have been trained by --task sb_translation "
            f"--sb-direction {wanted}, for its training to go on, but was trained "
            f"{how}: {f'add --sb-direction {saved}, or ' if saved else ''}start from "
            "its weights by --finetune-from-model alone, with another --save-dir"
        )


def fingerprint(dictionary: Any) -> str:
    """Size and checksum of a dictionary's symbols, tags included."""
    checksum = zlib.crc32("\n".join(dictionary.symbols).encode())
    return f"{len(dictionary)} types, CRC {checksum:08x}"


def check_dictionaries(
    settings: Any, words: tuple[Any, Any], languages: tuple[str, str], where: str
) -> None:
    """Check that a trained model's dictionaries are those of the command.

    Args:
        settings: the model's, as its checkpoint has them.
        words: dictionaries of source and target.
        languages: of source and target, which may be exchanged where a model
            translates both ways.
        where: the checkpoint, for the message.

    Raises:
        ValueError: with the dictionary that differs.
    """
    saved = list(getattr(settings, "sb_dictionaries", None) or ())
    trained = trained_languages(settings)
    known = list(getattr(settings, "sb_languages", None) or ())  # new since 0.3.0
    if trained is None and known == list(languages[::-1]):
        logger.warning(
            "%s was trained with --source-lang %s --target-lang %s, and here it is the "
            "other way round: exchange them unless the model knows both ways",
            *(where, *known),
        )
    if trained is not None and exchanged_languages(trained, *languages):
        saved.reverse()
    for name, old, dictionary in zip(("source", "target"), saved, words):
        new = fingerprint(dictionary)
        if old != new:
            raise ValueError(
                f"the {name} dictionary must be the one of {where} ({old}), but is "
                f"another ({new}): use the dict.*.txt of the training"
            )


def forget_files(settings: Any) -> None:
    """Take the files of embeddings out of a trained model's settings.

    Its embeddings are in the checkpoint; fairseq would read the files once more.

    Args:
        settings: the model's, with one group for all or one for each side.
    """
    for side in ("encoder", "decoder"):
        group = getattr(settings, side, None)
        for place, name in (settings, f"{side}_embed_path"), (group, "embed_path"):
            if getattr(place, name, None) is not None:
                setattr(place, name, None)


def trained_languages(settings: Any) -> tuple[str, str] | None:
    """Return the languages of a training, where a model translates both ways.

    Args:
        settings: the model's, as its checkpoint has them.
    """
    model = ARCH_MODEL_REGISTRY.get(architecture_of(settings))
    says = getattr(model, "trained_languages", None)  # see protocol.Model
    return None if says is None else says(settings)


def exchanged_languages(saved: Sequence[str], source: str, target: str) -> bool:
    """Tell whether a command exchanges the languages of a training.

    Args:
        saved: source and target language of the training.
        source, target: those of the command.

    Raises:
        ValueError: they are others.
    """
    if source != target and {source, target} == set(saved):
        return [source, target] != list(saved)
    first, second = saved
    raise ValueError(
        f"the languages of this model must be those of its training, {first} and "
        f"{second}, in either order, but are {source} and {target}: add --source-lang "
        f"{first} --target-lang {second}, or the other way round"
    )


def check_function(
    checkpoint: Checkpoint, settings: Any, names: Sequence[str] = (*FUNCTION, *TIES)
) -> None:
    """Check that a training's model computes what the one that it starts from does.

    Args:
        settings: of the training's model.
        names: those that are compared.

    Raises:
        ValueError: with the first setting by which it would not, or by which it ties
            matrices that were two.
    """
    old = checkpoint.settings
    for name in names:
        before, now = old.get(name), getattr(settings, name, None)
        fine = name in TIES and (not now or old.get(TIES[0]))  # which ties all
        if None not in (before, now) and before != now and not fine:
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"{flag} must be {before}, as in the training of {checkpoint.path}, "
                f"but is {now}: with it these weights would compute something else"
            )


def check_start(
    checkpoint: Checkpoint, words: tuple[Any, Any], languages: tuple[str, str]
) -> None:
    """Check that training may start from a checkpoint: same dictionaries.

    One of fairseq's own, without fingerprints, must have as many rows as the
    dictionaries without their two tags.

    Args:
        words: dictionaries of source and target.
        languages: of source and target.

    Raises:
        ValueError: it belongs to other dictionaries, or it translates both ways and
            its training had other languages, or these the other way round.
    """
    path, settings = checkpoint.path, Namespace(**checkpoint.settings)
    trained = trained_languages(settings) or languages
    if trained != languages:
        raise ValueError(
            f"a training that starts from {path} must have its languages, "
            f"--source-lang {trained[0]} --target-lang {trained[1]}, but has "
            f"{' and '.join(languages)}: they may be exchanged in decoding alone"
        )
    ours = getattr(settings, "sb_dictionaries", None) is not None
    if ours:
        check_dictionaries(settings, words, languages, path)
    for name, dictionary in zip(("encoder", "decoder"), words):
        shape = checkpoint.shapes.get(f"{name}.embed_tokens.weight")
        rows = len(dictionary) - (0 if ours else len(TAGS))
        if shape is not None and shape[0] != rows:
            raise ValueError(
                f"{name}.embed_tokens.weight of {path} must have {rows} rows, one for "
                f"each word of the dictionary {'and' if ours else 'without'} tags, but "
                f"has {shape[0]}: initialise from a model trained with the same "
                "dict.*.txt"
            )
