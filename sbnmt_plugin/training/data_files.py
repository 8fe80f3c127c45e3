"""Checks of the files of a data folder; R2L texts, which lie beside the pairs."""

from __future__ import annotations

import os
import re
import struct
from typing import Any

import numpy as np
from fairseq.data import IndexedDataset, data_utils
from fairseq.data.indexed_dataset import _code_to_dtype, infer_dataset_impl

from sbnmt_plugin.lines import each_entry
from sbnmt_plugin.symbols import RESERVED, UNKNOWN
from sbnmt_plugin.training.checksums import check_sums

# the index: magic, version (8 bytes), type (1), number of lines n (8); then n lengths
# (4 bytes each), n offsets (8)
MAGIC = b"MMIDIDX\x00\x00"
HEADER = len(MAGIC) + 17
WORD = re.compile(r"(\S+) [0-9]+( #fairseq:overwrite)?")  # of a dictionary
ANEW = "binarise all texts of the split together again (sbnmt binarise)"


def check_languages(folder: str, *given: str | None) -> list[str | None]:
    """Check that a data folder names its languages where they are not given.

    Returns:
        Those that it names, or None.

    Raises:
        ValueError: it does not.
    """
    found: list[str | None] = [None, None]
    if os.path.isdir(folder):
        found = list(data_utils.infer_language_pair(folder))
    if None in given and None in found:
        raise ValueError(
            f"{folder} must be a folder that sbnmt binarise has written, but no file "
            "of it names two languages: give such a folder, or -s and -t"
        )
    return found


def check_dictionary(path: str) -> None:
    """Refuse a dictionary that fairseq would read as another, or not at all.

    Raises:
        FileNotFoundError, ValueError: see :func:`each_entry`; a word is reserved, or
            stands there twice.
    """
    rule = "a word and its count, with a blank between"
    remedy = "give a dictionary that sbnmt binarise or fairseq-preprocess wrote"
    seen: set[str] = set()
    for number, entry in enumerate(each_entry(path, WORD, rule, remedy), start=1):
        word, place = entry[1], f"{path}, line {number}, must not contain {entry[1]}"
        if word in RESERVED or word == UNKNOWN:
            raise ValueError(
                f"{place}, which is reserved: remove the line, and write the word in "
                "another way where a text has it"
            )
        if word in seen:
            raise ValueError(f"{place}, as an earlier line does: remove one")
        seen.add(word)


def check_split(
    prefix: str, pairs: tuple[str, str], streams: list[str], combine: bool
) -> None:
    """Refuse files of a split that fairseq would pass over.

    Args:
        prefix: folder and name of the split.
        pairs: the names that fairseq tries, ``en-de`` and ``de-en``.
        streams: languages, and ``r2l``.
        combine: whether fairseq joins the parts of the split, as in training.

    Raises:
        FileNotFoundError: there is no such split.
        ValueError: see :func:`check_stream`; the split has a second part to be joined.
    """
    for name in (f"{pair}.{stream}" for pair in pairs for stream in streams):
        check_stream(f"{prefix}.{name}")
        if combine and IndexedDataset.exists(f"{prefix}1.{name}"):
            raise ValueError(
                f"{prefix} must be in one part, but there is {prefix}1.{name}, too: "
                f"join the texts, and {ANEW}"
            )
    if not any(IndexedDataset.exists(f"{prefix}.{x}.{streams[0]}") for x in pairs):
        folder, split = os.path.split(prefix)
        sets = {x.split(".")[0] for x in os.listdir(folder or ".") if ".idx" in x}
        raise FileNotFoundError(
            f"{folder} must have the set {split} ({split}.{pairs[0]}.*), but has "
            f"{', '.join(sorted(sets)) or 'none'}: binarise it, or name another"
        )


def check_stream(prefix: str) -> None:
    """Refuse a stream that is there but not whole.

    Raises:
        ValueError: half of its two files, files of another format than fairseq's
            mmap, or one that has been cut off or changed.
    """
    if not IndexedDataset.exists(prefix):
        there = [f"{prefix}{end}" for end in ("", ".bin", ".idx")]
        there = [path for path in there if os.path.isfile(path)]
        if there:
            raise ValueError(
                f"{prefix} must be there as .bin and .idx, but is as "
                f"{' and '.join(there)} only: {ANEW}"
            )
        check_sums(f"{prefix}.bin", f"{prefix}.idx")  # that it is meant to be missing
        return
    kind = infer_dataset_impl(prefix) or "mmap"
    if kind != "mmap":
        raise ValueError(f"{prefix} must be in format mmap, but is in {kind}: {ANEW}")
    if not _is_whole(prefix):
        raise ValueError(
            f"{prefix}.bin and .idx must be whole, but are cut off or damaged: {ANEW}"
        )
    check_sums(f"{prefix}.bin", f"{prefix}.idx")


def _is_whole(prefix: str) -> bool:
    """Tell whether index and data are as fairseq's mmap format promises.

    The lines stand one after the other: each starts where the one before it ends.
    """
    with open(f"{prefix}.idx", "rb") as index:
        header = index.read(HEADER)
        if len(header) < HEADER or not header.startswith(MAGIC):
            return False
        version, code, count = struct.unpack("<QBQ", header[len(MAGIC) :])
        size = HEADER + (4 + 8) * count
        known = version == 1 and code in _code_to_dtype
        if not known or os.path.getsize(index.name) != size:
            return False
        lengths = np.fromfile(index, np.int32, count).astype(np.int64)
        starts = np.fromfile(index, np.int64, count)
    lengths *= np.dtype(_code_to_dtype[code]).itemsize
    ends = np.cumsum(lengths)
    fits = os.path.getsize(f"{prefix}.bin") >= ends.max(initial=0)
    return fits and np.array_equal(starts, ends - lengths)


def load_opposite(prefix: str, cfg: Any, pairs: Any, dictionary: Any) -> Any:
    """Load the R2L texts of a split; None where it has none.

    Args:
        prefix: folder and name of the split.
        cfg: the task's.
        pairs: fairseq's dataset of the split.

    Raises:
        ValueError: another number of lines.
    """
    path = f"{prefix}.{cfg.source_lang}-{cfg.target_lang}.r2l"
    if not IndexedDataset.exists(path):
        return None
    found = data_utils.load_indexed_dataset(path, dictionary)
    if len(found) != len(pairs.tgt):
        raise ValueError(
            f"{path} has {len(found)} lines, but "
            f"{path.removesuffix('r2l')}{cfg.source_lang} has {len(pairs.tgt)}: {ANEW}"
        )
    return found


def refuse_reserved(dictionary: Any, sentences: Any) -> None:
    """Refuse text that contains a reserved symbol.

    Args:
        dictionary: of the source.
        sentences: ids of each, ``</s>`` last.

    Raises:
        ValueError: with the sentence and the symbol.
    """
    reserved = {dictionary.index(symbol): symbol for symbol in RESERVED}
    end = dictionary.eos()
    for number, tokens in enumerate(sentences, start=1):
        words = tokens.tolist()
        words = words[:-1] if words[-1:] == [end] else words
        for word in words:
            if word in reserved:
                raise ValueError(
                    f"sentence {number} of the input must not contain "
                    f"{reserved[word]}, which is reserved: remove it or write it "
                    "in another way"
                )
