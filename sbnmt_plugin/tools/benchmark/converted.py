"""Models in CTranslate2's form: a Transformer in its search, and exported ones."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch

from sbnmt_plugin.layout import L2R, NAMES
from sbnmt_plugin.tools.benchmark.cases import Case
from sbnmt_plugin.tools.benchmark.models import Batch, Search, Spec, load
from sbnmt_plugin.tools.models.conversion import convert
from sbnmt_plugin.tools.models.converted import END, Converted
from sbnmt_plugin.tools.models.ctranslate2_engine import CTranslate2Engine


class Exported:
    """A model without interaction, in the search of an exported folder.

    Args:
        dtype: CTranslate2's name of the type of its weights.
        kind: of the model, see :func:`models.load`.
        rescore: the weight of ``--sb-rescore``, which does not matter for its speed.

    Raises:
        ValueError: CTranslate2 is not installed, or does not know the model.
    """

    def __init__(
        self, spec: Spec, dtype: str, kind: str = "both", rescore: float = 0.0
    ) -> None:
        self.loaded, self.rescore = load(spec, kind), rescore
        directions = (kind,) if kind in NAMES else NAMES
        words, threads = (
            (self.loaded.source, self.loaded.words),
            torch.get_num_threads(),
        )
        with tempfile.TemporaryDirectory() as name:
            convert(self.loaded.model, *words, directions, Path(name))
            given = Path(name), directions, spec.device, dtype, threads
            self.converted = Converted(*given)
        self.loaded.model = None  # its memory is not CTranslate2's

    def search(self, case: Case) -> Search:
        source, words = self.loaded.source, self.loaded.words
        translate = self.translation(case)

        def best(sample: Batch) -> list[list[int]]:
            rows = sample["net_input"]["src_tokens"]
            texts = [row[row != source.pad()][:-1].tolist() for row in rows]
            answers = translate([[source[i] for i in text] for text in texts])
            return [[*map(words.index, answer), words.eos()] for answer in answers]

        return best

    def translation(self, case: Case) -> Any:
        """Return what translates sources, lists of subwords, into others."""
        options = {"beam": case.beam, "lenpen": case.alpha, "length_penalty": "gnmt"}
        lengths = {"max_len_a": 0, "max_len_b": 200, **case.limits}
        given = {**options, **lengths, "rescore": self.rescore}
        engine, alpha, length = (
            CTranslate2Engine(self.converted, given, 1),
            case.alpha,
            case.length,
        )

        def translate(sources: list[list[str]]) -> Any:
            if length is None:
                found = engine.search(sources)
            else:  # cut at it, since made-up models do not end by themselves
                sought = self.converted.search(
                    sources, engine.beam, alpha, length - 1, length
                )
                found = engine.ranked(sources, sought)
            return [own[0][0].text for own in found]

        return translate


class CTranslate2(Exported):
    """A Transformer in CTranslate2's own search: a user's choice for speed alone."""

    def __init__(self, spec: Spec, dtype: str) -> None:
        super().__init__(spec, dtype, NAMES[L2R])

    def translation(self, case: Case) -> Any:
        """Return what translates sources: see :meth:`Exported.translation`."""
        lengths = {"max_len_a": 0, "max_len_b": 200, **case.limits}

        def translate(sources: list[list[str]]) -> Any:
            most = lengths["max_len_a"] * (max(map(len, sources)) + 1)
            found = self.converted.translator.translate_batch(
                sources,
                [[END]] * len(sources),
                max_input_length=0,
                beam_size=case.beam,
                length_penalty=case.alpha,
                min_decoding_length=case.length or 1,
                max_decoding_length=int(most + lengths["max_len_b"]),
            )
            return [result.hypotheses[0] for result in found]

        return translate
