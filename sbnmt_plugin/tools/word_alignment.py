"""Word alignment error rate: a decoder's attention, against links that are known.

Links are pairs of places of words, from 0.  A text of known links has a line a sentence
in Pharaoh's format, ``0-0 1?2``: ``-`` for a sure link, ``?`` for one that is possible
only.  With A what was found, S the sure links and P those that are possible, S among
them (Och and Ney 2003)::

    AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from fairseq import utils
from fairseq.data import LanguagePairDataset
from torch import Tensor

from sbnmt_plugin.layout import L2R, R2L
from sbnmt_plugin.network.fairseq_decoder import searchable
from sbnmt_plugin.network.protocol import name_of, said
from sbnmt_plugin.tools.translator import Translator
from sbnmt_plugin.tools.word_links import Links, parse_links
from sbnmt_plugin.training.dataset import SBLanguagePairDataset


def parse_gold(line: str) -> tuple[Links, Links]:
    """Sure links, and all that are possible.

    Raises:
        ValueError: what is no link.
    """
    possible = parse_links(line, "-?")
    return parse_links(" ".join(x for x in line.split() if "?" not in x)), possible


def alignment_error_rate(found: list[Links], gold: list[tuple[Links, Links]]) -> float:
    """Compute the rate of all sentences together, in percent.

    Raises:
        ValueError: there is no link at all.
    """
    right = total = 0
    for links, (sure, possible) in zip(found, gold):
        right += len(links & sure) + len(links & possible)
        total += len(links) + len(sure)
    if not total:
        raise ValueError("there must be a link, found or sure, but there is none")
    return 100 * (1 - right / total)


def words_of(line: str) -> list[int]:
    """Number the word of each token of a line: ``a@@ b c`` is 0 0 1."""
    found, word = [], 0
    for token in line.split():
        found.append(word)
        word += not token.endswith("@@")
    return found


def links_of(weights: Tensor, source: list[int], target: list[int]) -> Links:
    """A link a target word, to the source word that has most of its attention.

    A source word has the sum of its tokens' attention, a target word the mean over its
    tokens.  ``</s>`` is no word on either side.

    Args:
        weights: (T, S) of tokens, more of either than there are tokens of words.
        source, target: see :func:`words_of`.
    """
    if not source or not target:
        return set()
    words = torch.zeros(weights.size(0), source[-1] + 1, dtype=torch.float64)
    words.index_add_(1, torch.tensor(source), weights[:, : len(source)].double())
    sums = torch.zeros(target[-1] + 1, words.size(1), dtype=torch.float64)
    sums.index_add_(0, torch.tensor(target), words[: len(target)])
    return {(int(best), word) for word, best in enumerate(sums.argmax(1))}


@torch.no_grad()
def forced_attention(
    translator: Translator, inputs: list[str], targets: list[str]
) -> Iterator[Tensor]:
    """Attention to the source while the reference is forced, a sentence at a time.

    So no source is padded, and a column of attention means the same to every decoder:
    fairseq's LSTM moves columns past the padding.

    Of a model of both directions it is the L2R half's; the other half is given the same
    text.

    Args:
        inputs, targets: lines as binarised.

    Yields:
        (T, S) of each sentence, in natural order; ``</s>`` comes last in S, and is not
        in T.

    Raises:
        ValueError: several models, or one that gives no attention; a line that is
            too long.
    """
    task = translator.task
    if len(translator.models) != 1:
        raise ValueError("--path must be one model: each looks at other words")
    (model,) = translator.models
    model.eval()
    words = task.source_dictionary, task.target_dictionary
    sides: list[Any] = []
    flags, texts = ("--input", "--reference"), (inputs, targets)
    for flag, lines, dictionary, most in zip(
        flags, texts, words, translator.max_positions
    ):
        rows = [
            dictionary.encode_line(line, add_if_not_exist=False).long()
            for line in lines
        ]
        for number, row in enumerate(rows, start=1):
            if len(row) > most:
                raise ValueError(
                    f"{flag}, line {number}, must have at most {most} tokens with "
                    f"</s>, the model's positions, but has {len(row)}: leave out the "
                    "pair"
                )
        sides += [rows, [len(row) for row in rows], dictionary]
    pairs = LanguagePairDataset(*sides, shuffle=False)
    streams = SBLanguagePairDataset(pairs, None, task.symbols.starts, task.directions)
    for number in range(len(streams)):
        net_input = streams.collater([streams[number]])["net_input"]
        if translator.cuda:
            net_input = utils.move_to_cuda(net_input)
        (weights,) = attention_of(model, net_input, len(task.directions)).cpu()
        found = weights[:-1]
        yield found.flip(0) if task.directions == (R2L,) else found


def attention_of(model: Any, net_input: dict[str, Any], directions: int) -> Tensor:
    """Return any decoder's attention (B, T, S), step by step with given words.

    Args:
        directions: D.

    Raises:
        ValueError: there is no attention, or none step by step.
    """
    if said(model, "writes_at_once"):
        raise ValueError(
            f"--path must be a model that writes word by word, but {name_of(model)} "
            "writes all at once: use another"
        )
    given = dict(net_input)
    tokens = given.pop("prev_output_tokens")
    encoder_out = model.encoder.forward_torchscript(given)
    forced = said(model, "forced_inputs")
    encoder_out, tokens, layout = forced(encoder_out, tokens, directions)
    decoder = searchable(model)
    state = decoder.start(encoder_out, layout, weights=True)
    found = []
    for step in range(1, tokens.size(1) + 1):
        _, attention = decoder.step(tokens[:, :step], state)
        if attention is None:
            raise ValueError(
                "--path must be a model whose decoder gives attention to the source, "
                f"but {name_of(model)} gives none"
            )
        found.append(attention[L2R :: layout.directions])
    return torch.stack(found, 1)
