"""Models in CTranslate2's form: a Transformer in its search, and exported ones."""

from __future__ import annotations

from sbnmt_plugin.layout import L2R, NAMES
from sbnmt_plugin.tools.benchmark.cases import Case
from sbnmt_plugin.tools.benchmark.models import Batch, Search, Spec, load
from sbnmt_plugin.tools.models.conversion import ConvertedSearch
from sbnmt_plugin.tools.models.converted import END, WORKERS


class Exported:
    """A model without interaction, in the search of an exported folder.

    Args:
        dtype: CTranslate2's name of the type of its weights.
        kind: of the model, see :func:`models.load`.
        rescore: the weight of ``--sb-rescore``, which does not matter for its speed.
        workers: see :class:`converted.Converted`.

    Raises:
        ValueError: CTranslate2 is not installed, or does not know the model.
    """

    def __init__(
        self,
        spec: Spec,
        dtype: str,
        kind: str = "both",
        rescore: float = 0.0,
        workers: int = WORKERS,
    ) -> None:
        self.loaded = load(spec, kind)
        options = {"beam": 2, "rescore": rescore, "length_penalty": "gnmt"}
        self.generator = ConvertedSearch(
            self.loaded.model,
            directions=(kind,) if kind in NAMES else NAMES,
            search=options,
            device=spec.device,
            compute=dtype,
            workers=workers,
        )
        self.loaded.model = None  # its memory is not CTranslate2's

    def search(self, case: Case) -> Search:
        engine, generator = self.generator.engine, self.generator
        lengths = {"max_len_a": 0, "max_len_b": 200, **case.limits}
        engine.options |= {"beam": case.beam, "lenpen": case.alpha, **lengths}
        engine.beam = case.beam // len(engine.model.starts)

        def best(sample: Batch) -> list[list[int]]:
            texts = self.answers(generator.sources(sample), case)
            return [generator.ids(text).tolist() for text in texts]

        return best

    def answers(self, sources: list[list[str]], case: Case) -> list[tuple[str, ...]]:
        """Return the best text of each source; made-up models do not end it."""
        engine, length = self.generator.engine, case.length
        if length is None:
            found = engine.search(sources)
        else:
            how = engine.beam, case.alpha, length - 1, length
            sought = engine.model.search(sources, *how)
            found = engine.ranked(sources, sought, [length] * len(sources))
        return [own[0][0][0] for own in found]


class CTranslate2(Exported):
    """A Transformer in CTranslate2's own search: a user's choice for speed alone.

    A single sentence, which is not divided, has all threads.
    """

    def __init__(self, spec: Spec, dtype: str) -> None:
        self.loaded, self.how = load(spec, NAMES[L2R]), (spec, dtype, NAMES[L2R])
        self.loaded.model = None

    def search(self, case: Case) -> Search:
        loaded = self.loaded  # whose task has the test set
        super().__init__(*self.how, workers=1 if case.batch == 1 else WORKERS)
        self.loaded = loaded
        return super().search(case)

    def answers(self, sources: list[list[str]], case: Case) -> list[tuple[str, ...]]:
        """Return the best text of each source."""
        results = self.generator.engine.model.side_by_side(
            [(source, [END]) for source in sources],
            max_input_length=0,
            beam_size=case.beam,
            length_penalty=case.alpha,
            min_decoding_length=case.length or 1,
            max_decoding_length=max(map(self.generator.engine.longest, sources)),
        )
        return [tuple(result.hypotheses[0]) for result in results]
