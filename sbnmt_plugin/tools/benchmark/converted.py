"""A Transformer of fairseq's converted for CTranslate2."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.benchmark.models import Loaded


class CTranslate2Model:
    """A model in CTranslate2's form, in memory.

    Args:
        loaded: the model, which is moved to the CPU, and its dictionaries.
        dtype: CTranslate2's name of the type of its weights.

    Raises:
        ValueError: CTranslate2 is not installed, or the model has another activation
            than ReLU.
    """

    def __init__(self, loaded: Loaded, device: str, dtype: str) -> None:
        with command.extra("benchmark"):
            import ctranslate2

        loaded.model.cpu().eval()
        with tempfile.TemporaryDirectory() as folder:
            convert(loaded, Path(folder) / "model")
            self.translator = ctranslate2.Translator(
                str(Path(folder) / "model"),
                device=device,
                compute_type=dtype,
                inter_threads=1,
                intra_threads=torch.get_num_threads(),
            )
        source = loaded.source
        self.names = ["<blank>" if w == source.pad_word else w for w in source.symbols]
        self.pad, self.words = source.pad(), loaded.words

    def translate(self, tokens: Tensor, **options: Any) -> list[list[int]]:
        """Return the tokens of the best hypothesis of every source, ``</s>`` included.

        Args:
            tokens: (B, S) of the sources, padded.
            options: of CTranslate2's ``translate_batch``.
        """
        sources = [
            [self.names[i] for i in row[row != self.pad][:-1].tolist()]
            for row in tokens
        ]
        found = self.translator.translate_batch(sources, max_input_length=0, **options)
        best = (result.hypotheses[0] for result in found)
        eos = self.words.eos()
        return [[*map(self.words.index, names), eos] for names in best]


def convert(loaded: Loaded, folder: Path) -> None:
    """Write a Transformer in CTranslate2's form, by parts of its own converter."""
    from ctranslate2.converters import fairseq as converter
    from ctranslate2.specs import common_spec, transformer_spec

    model = loaded.model.requires_grad_(False)
    layer = model.encoder.layers[0]
    if layer.activation_fn is not torch.nn.functional.relu:
        raise ValueError("the benchmark converts models with --activation-fn relu only")
    spec = transformer_spec.TransformerSpec.from_config(
        (len(model.encoder.layers), len(model.decoder.layers)),
        layer.self_attn.num_heads,
        pre_norm=layer.normalize_before,
        activation=common_spec.Activation.RELU,
    )
    converter.set_transformer_encoder(spec.encoder, model.encoder)
    converter.set_transformer_decoder(spec.decoder, model.decoder)
    spec.register_source_vocabulary(converter._get_vocab(loaded.source))
    spec.register_target_vocabulary(converter._get_vocab(loaded.words))
    spec.config.decoder_start_token = spec.config.eos_token
    spec.config.add_source_eos = True
    spec.validate()
    folder.mkdir()
    spec.save(str(folder))
