"""What a direction writes beside a partner that is given."""

import json

import pytest
import torch
from steps import call

from sbnmt_plugin.layout import TRAINING
from sbnmt_plugin.tools import greedy, probes
from sbnmt_plugin.tools.commands import probe_reading
from sbnmt_plugin.tools.translator import Translator
from sbnmt_plugin.training.read_bits import ALONE

EOS, PAD = 2, 1


@pytest.fixture(scope="module", params=[0.0, 1.0], ids=["λ = 0", "λ = 1"])
def read(request, data, trained):
    """λ, a model, and gold text."""
    override = json.dumps({"sb_lambda": request.param})
    words = [str(data), "--path", str(trained), "--cpu", "--model-overrides", override]
    translator = Translator(words)
    return request.param, translator, probes.gold_batches(translator, "valid")[0]


def best_words(model, batch, streams, layout):
    """All at once: the word that is best at each place of streams, tags first."""
    source = batch["net_input"]
    out = model.encoder(source["src_tokens"], src_lengths=source["src_lengths"])
    with torch.no_grad():
        logits = model.decoder(streams, out, layout=layout)[0].clone()
    logits[..., [PAD, *source["prev_output_tokens"][:2, 0].tolist()]] = -torch.inf
    return logits.argmax(-1)


def right_up_to_its_end(found, words):
    """Whether each stream has the best word at each place, and ends where </s> is."""
    count = words.ne(PAD).sum(1)
    for i, n in enumerate(count.tolist()):
        end = [EOS] if n < words.size(1) else []
        if found[i, : n + 1].tolist() != [*words[i, :n].tolist(), *end]:
            return False
    return True


def tagged(batch, words):
    """Streams as a decoder reads them."""
    return torch.cat([batch["net_input"]["prev_output_tokens"][:, :1], words], 1)


@pytest.mark.parametrize("partner", greedy.PARTNERS)
def test_every_word_is_the_best_after_those_before(read, partner):
    weight, translator, batch = read
    (model,) = translator.models
    words = greedy.write(model, batch, EOS, PAD, partner)
    layout = ALONE if partner == greedy.NONE else TRAINING
    gold = batch["net_input"]["prev_output_tokens"]
    gold = torch.nn.functional.pad(
        gold, (0, 1 + words.size(1) - gold.size(1)), value=PAD
    )
    for direction in 0, 1:
        streams = tagged(batch, words)
        if partner == greedy.GOLD:
            streams[1 - direction :: 2] = gold[1 - direction :: 2]
        found = best_words(model, batch, streams[:, :-1], layout)
        assert right_up_to_its_end(found[direction::2], words[direction::2])
        # and not after those of another partner, if any is read
        streams[1 - direction :: 2] = streams[1 - direction :: 2].roll(1, 0)
        found = best_words(model, batch, streams[:, :-1], TRAINING)
        same = right_up_to_its_end(found[direction::2], words[direction::2])
        assert same == (weight == 0)


def test_who_does_not_read_writes_the_same_beside_anybody(read):
    weight, translator, batch = read
    found = [
        greedy.write(translator.models[0], batch, EOS, PAD, partner)
        for partner in greedy.PARTNERS
    ]
    assert all(torch.equal(found[0], x) for x in found[1:]) == (weight == 0)


def test_the_command_scores_what_is_written(data, trained, tmp_path, capsys):
    out = tmp_path / "reading.json"
    words = [data, "--path", trained, "--cpu", "--json", out]
    call(probe_reading, *words)
    assert "BLEU" not in capsys.readouterr().out
    assert "written" not in json.loads(out.read_text())
    call(probe_reading, *words, "--write")
    printed = capsys.readouterr().out
    written = json.loads(out.read_text())["written"]
    assert list(written) == ["own", "gold", "none"]
    for partner, scores in written.items():
        line = f"words: {partner:<5} l2r {scores['l2r']:.2f}   r2l {scores['r2l']:.2f}"
        assert line in printed


def test_bleu_is_of_text_in_reading_order(data, trained, monkeypatch):
    """Who writes the gold words has 100, and its mirror image has not."""
    translator = Translator([str(data), "--path", str(trained), "--cpu"])
    batches = probes.gold_batches(translator, "valid")

    def right(model, batch, *others):
        return batch["stream_target"]

    monkeypatch.setattr(greedy, "write", right)
    scores = greedy.bleu_by_partner(translator, batches)
    assert scores["own"] == {"l2r": 100, "r2l": 100}
    monkeypatch.setattr(greedy, "write", lambda *given: right(*given).flip(1))
    scores = greedy.bleu_by_partner(translator, batches)
    assert max(scores["own"].values()) < 90
