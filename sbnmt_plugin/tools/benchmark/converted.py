"""A Transformer of fairseq's, converted for CTranslate2."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from sbnmt_plugin.layout import L2R, NAMES
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.benchmark.cases import Case
from sbnmt_plugin.tools.benchmark.models import Batch, Loaded, Search, Spec, load


class CTranslate2:
    """The same Transformer as fairseq's: a user's choice for speed alone.

    Args:
        dtype: CTranslate2's name of the type of its weights.

    Raises:
        ValueError: CTranslate2 is not installed, or the model has another activation
            than ReLU.
    """

    def __init__(self, spec: Spec, dtype: str) -> None:
        with command.extra("benchmark"):
            import ctranslate2

        self.loaded = load(spec, NAMES[L2R])
        with tempfile.TemporaryDirectory() as folder:
            convert(self.loaded, Path(folder) / "model")
            self.translator = ctranslate2.Translator(
                str(Path(folder) / "model"),
                device=spec.device,
                compute_type=dtype,
                inter_threads=1,
                intra_threads=torch.get_num_threads(),
            )
        self.loaded.model = None  # its memory is not CTranslate2's

    def search(self, case: Case) -> Search:
        source, words = self.loaded.source, self.loaded.words
        names = ["<blank>" if w == source.pad_word else w for w in source.symbols]

        def best(sample: Batch) -> list[list[int]]:
            tokens = sample["net_input"]["src_tokens"]
            texts = (row[row != source.pad()][:-1].tolist() for row in tokens)
            lengths = {"max_len_a": 0, "max_len_b": 200, **case.limits}
            longest = int(lengths["max_len_a"] * tokens.size(1) + lengths["max_len_b"])
            found = self.translator.translate_batch(
                [[names[i] for i in text] for text in texts],
                max_input_length=0,
                beam_size=case.beam,
                length_penalty=case.alpha,
                min_decoding_length=case.length or 1,
                max_decoding_length=longest,
            )
            answers = (result.hypotheses[0] for result in found)
            return [[*map(words.index, answer), words.eos()] for answer in answers]

        return best


def convert(loaded: Loaded, folder: Path) -> None:
    """Write a Transformer in CTranslate2's form, by parts of its own converter."""
    from ctranslate2.converters import fairseq as converter
    from ctranslate2.specs import common_spec, transformer_spec

    model = loaded.model.cpu().eval().requires_grad_(False)
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
