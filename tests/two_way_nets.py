"""The two-way model under test: its inputs, its outputs and its loss."""

import torch
from helpers import S, dictionary, fake_task, live_of, source, target, two_way_model

from sbnmt_plugin.families.two_way.criterion import TwoWayCrossEntropy

EXACT = {"rtol": 0, "atol": 1e-10}
LENGTHS, STEPS = (7, 4, 6), (5, 3, 4)  # J and I, </s> counted
PAD, EOS = dictionary().pad(), dictionary().eos()
EPSILON = 0.1  # label smoothing


def spread(rows, live, shape):
    """Put rows (n, V) at their places of (B, T, V), 0 elsewhere."""
    grid = rows.new_zeros(shape[0] * shape[1], rows.size(-1)).index_copy(0, live, rows)
    return grid.view(shape[1], shape[0], -1).transpose(0, 1)


def both(model, net_input, prev):
    """Return log p(e|f) (B, I, V_e) and log p(f|e) (B, J, V_f), 0 at padding."""
    live = live_of(prev)
    forth, extra = model(**net_input, prev_output_tokens=prev, live=live)
    back, labels, places = extra["back"]
    return (
        spread(forth.log_softmax(-1), live, prev.shape),
        spread(back.log_softmax(-1), places, labels.shape),
    )


def net(tokens):
    """Return the model's input for source tokens (B, J)."""
    return {"src_tokens": tokens, "src_lengths": None}


def sentences():
    """Yield each sentence's number, source (J',) and decoder input (I',), unpadded."""
    tokens, prev = source(two_way_model())["src_tokens"], target(STEPS)
    for b, (places, steps) in enumerate(zip(LENGTHS, STEPS)):
        yield b, tokens[b, S - places :], prev[b, :steps]


def batch(model):
    """Make the batch that the task hands to a criterion."""
    prev = target(STEPS)
    labels = torch.cat([prev[:, 1:], prev.new_full((3, 1), PAD)], 1)
    for row, steps in zip(labels, STEPS):
        row[steps - 1] = EOS
    net_input = {**source(model), "prev_output_tokens": prev}
    return {
        "net_input": net_input,
        "target": labels,
        "live": live_of(prev),
        "stream_lengths": list(STEPS),
        "ntokens": sum(STEPS),
        "nsentences": 3,
    }


def criterion(sentence_avg=False, kind=TwoWayCrossEntropy):
    """Make the criterion of both translation directions."""
    task = fake_task()
    task.directions = (0,)
    return kind(task, sentence_avg, EPSILON, 0, True)
