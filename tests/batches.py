"""Batches of triples for SB-NMT's loss, and the loss itself."""

import torch
from helpers import fake_task, live_of, source, streams

from sbnmt_plugin.layout import L2R, R2L
from sbnmt_plugin.training.criterion import SBLabelSmoothedCrossEntropy


def make_sample(model):
    """Make a batch of three triples, as the task hands it to a criterion."""
    prev = streams(model)
    words = model.decoder.dictionary
    labels = torch.full_like(prev, words.pad())
    lengths = [5, 5, 3, 5, 4, 2]
    for row, length in enumerate(lengths):
        labels[row, : length - 1] = prev[row, 1:length]
        labels[row, length - 1] = words.eos()
    return {
        "net_input": {**source(model), "prev_output_tokens": prev},
        "target": labels[::2],
        "stream_target": labels,
        "live": live_of(prev),
        "stream_lengths": lengths,
        "ntokens": sum(lengths),
        "nsentences": 3,
    }


def make_criterion(smoothing=0.1, directions=(L2R, R2L), sentence_avg=False):
    """Make SB-NMT's criterion with label smoothing, for these directions."""
    task = fake_task()
    task.directions = directions
    return SBLabelSmoothedCrossEntropy(task, sentence_avg, smoothing, 0, True)
