"""The Python interface to a trained model."""

import reprlib
from typing import Any

import torch
from fairseq import hub_utils
from torch import Tensor

from sbnmt_plugin.layout import DEFAULT_BEAM

FAIRSEQ_ARGUMENTS = {  # of GeneratorHubInterface.generate, beside search options
    "verbose",
    "skip_invalid_size_inputs",
    "inference_step_args",
    "prefix_allowed_tokens_fn",
}


class SBHubInterface(hub_utils.GeneratorHubInterface):  # type: ignore[misc]
    """fairseq's hub interface; order is kept, empty lists and strings are fine."""

    def translate(
        self,
        sentences: list[str],
        beam: int = DEFAULT_BEAM,
        verbose: bool = False,
        **kwargs: Any,
    ) -> list[str]:
        """Translate sentences.

        Args:
            sentences: a list of texts; a single text gives a single text.
            beam: k, over both directions.
            kwargs: generation options by fairseq's names (``lenpen=0.6``) and ours
                (``sb_answer="l2r"``).

        Raises:
            ValueError: something else than texts; a bad option.
        """
        texts = [sentences] if isinstance(sentences, str) else sentences
        if not isinstance(texts, (list, tuple)) or not all(
            isinstance(text, str) for text in texts
        ):
            raise ValueError(
                "sentences must be a text or a list of texts, but is "
                f"{reprlib.repr(sentences)} instead"
            )
        return self.sample(sentences, beam=beam, verbose=verbose, **kwargs)

    def generate(
        self,
        tokenized_sentences: list[Tensor],
        beam: int = DEFAULT_BEAM,
        *args: Any,
        **kwargs: Any,
    ) -> list[list[dict[str, Any]]]:
        """As fairseq's; nothing in, nothing out."""
        self.task.check_names(set(kwargs) - FAIRSEQ_ARGUMENTS, "the Python API")
        if isinstance(tokenized_sentences, list) and not tokenized_sentences:
            return []
        with torch.no_grad():
            return super().generate(tokenized_sentences, beam, *args, **kwargs)
