"""BA-NMT's model: its sizes, which parameters learn, and what is refused."""

from argparse import Namespace
from functools import partial

import pytest
import torch
from helpers import fake_task, registered

from sbnmt_plugin.families.ba.model import RNNSearchModel

built = partial(registered, RNNSearchModel)


def test_the_papers_sizes_have_the_parameters_of_their_formulas():
    """Property 6: what the histories add to RNNsearch*, and RNNsearch* itself."""
    size, words = 512, 16000
    count = {}
    with torch.device("meta"):
        for name in ("rnnsearch", "sa_nmt", "ta_nmt", "ba_nmt"):
            model = built(name, words - 6, words - 6)
            count[name] = sum(p.numel() for p in model.parameters())

    def gru(inputs):
        return 3 * size * (inputs + size + 2)

    bare = 2 * words * size  # embeddings
    bare += 2 * gru(size)  # of the encoder
    bare += (2 * size + 1) * size + gru(size) + gru(2 * size)  # W_0, GRU_1, GRU_2
    bare += (size + 1) * size + 2 * size * size + size  # W_a, U_a, v_a
    bare += (4 * size + 1) * size + (size + 1) * words  # t, W_o
    assert count["rnnsearch"] == bare
    added = {name: number - bare for name, number in count.items()}
    assert added["sa_nmt"] == 2_886_656
    assert added["ta_nmt"] == 2_100_224
    assert added["ba_nmt"] == 4_986_880


def test_weights_begin_small_and_padding_at_nothing():
    model = built("ba_nmt", share_decoder_input_output_embed=True)
    for parameter in model.parameters():
        assert 0 < parameter.abs().max() <= 0.1
    pad = fake_task().target_dictionary.pad()
    for side in model.encoder, model.decoder:
        assert not side.embed_tokens.weight[pad].any()
    assert model.decoder.output_projection.weight is model.decoder.embed_tokens.weight
    assert model.decoder.dropout.p == 0.2
    assert model.decoder.attention.history_size == 512


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ba_history_size": 0}, "--ba-history-size must be ≥ 1, but is 0"),
        ({"decoder_hidden_size": -1}, "--decoder-hidden-size must be ≥ 1"),
        (
            {"share_all_embeddings": True, "encoder_embed_dim": 3},
            "--share-all-embeddings needs --encoder-embed-dim and --decoder-embed-dim "
            "to be equal, but they are 3 and 512",
        ),
    ],
    ids=str,
)
def test_sizes_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        built("ba_nmt", **options)


def test_shared_embeddings_need_one_dictionary():
    args = Namespace(share_all_embeddings=True)
    task = fake_task()
    model = RNNSearchModel.build_model(args, task)
    assert model.encoder.embed_tokens is model.decoder.embed_tokens
    task.source_dictionary = fake_task(words=8).source_dictionary
    with pytest.raises(ValueError, match="needs one dictionary for both languages"):
        RNNSearchModel.build_model(args, task)
