"""Slow, obvious references: the paper's formulas as loops, the search as lists."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

L2R, R2L = 0, 1


def attention_row(query: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    """Equation 2 for one query: softmax(q · k / √d) over the visible keys."""
    weights = [math.e ** (query @ key / math.sqrt(len(query))) for key in keys]
    return sum(w * v for w, v in zip(weights, values)) / sum(weights)


def fuse(
    module: Any, kind: str, history: Tensor, future: Tensor, head: int
) -> tuple[Tensor, Tensor]:
    """Equations 4-6 for one query of one head: two parts, whose sum is the fusion."""
    if kind == "gate":
        joined = module.projection.weight @ torch.cat([history, future])
        gates = 1 / (1 + torch.exp(-joined))
        size = len(history)
        return gates[:size] * history, gates[size:] * future
    weight = module.weight
    if isinstance(weight, Tensor):
        weight = weight[head * len(history) : (head + 1) * len(history)]
    shaped = {"linear": future, "tanh": torch.tanh(future), "relu": future.clamp(min=0)}
    return history, weight * shaped[kind]


def projected(module: Any, x: Tensor) -> list[Tensor]:
    """Queries, keys and values (..., C) of rows (..., C)."""
    projections = module.q_proj, module.k_proj, module.v_proj
    return [x @ p.weight.T + (0 if p.bias is None else p.bias) for p in projections]


def fused(module: Any, kind: str, histories: list[Tensor], futures: list[Tensor]):
    """Of one row, (C/H,) of each head: the fusion of all, projected, (C,).

    Where there is a reader, its projection takes what is added of the future.
    """
    parts = zip(
        *(
            fuse(module.fusion, kind, *pasts, head)
            for head, pasts in enumerate(zip(histories, futures))
        )
    )
    kept, added = map(torch.cat, parts)
    reading = module.reader or module
    own = module.out_proj.weight @ kept + module.out_proj.bias
    return own + reading.out_proj.weight @ added


def sb_attention(module: Any, kind: str, x: Tensor, padding: Tensor) -> Tensor:
    """Equations 3-10 as plain loops.

    Args:
        module: an SBSelfAttention, whose parameters are read.
        x: (T, 2B, C) with rows l2r, r2l, l2r, r2l …
        padding: (2B, T).

    Returns:
        (T, 2B, C); rows at padding are left at zero.
    """
    steps, rows, channels = x.shape
    size = channels // module.num_heads
    own, across = projected(module, x), projected(module.reader or module, x)
    result = torch.zeros_like(x)
    for row in range(rows):
        other = row + 1 if row % 2 == 0 else row - 1
        for i in range(steps):
            if padding[row, i]:
                continue
            pasts: list[list[Tensor]] = []
            for read, (q, k, v) in (row, own), (other, across):
                seen = [j for j in range(i + 1) if not padding[read, j]]
                pasts.append([])
                for head in range(module.num_heads):
                    part = slice(head * size, (head + 1) * size)
                    keys = [k[j, read, part] for j in seen]
                    values = [v[j, read, part] for j in seen]
                    if module.shift and read == other:
                        values = a_place_later(values)
                    pasts[-1].append(attention_row(q[i, row, part], keys, values))
            result[i, row] = fused(module, kind, *pasts)
    return result


def a_place_later(values: list[Tensor]) -> list[Tensor]:
    """Move values a place on; nothing stands at the first."""
    return [torch.zeros_like(values[0]), *values[:-1]]


def read(
    module: Any, query: Tensor, memory: list[Tensor], values: list[Tensor] | None = None
) -> Tensor:
    """Multi-head attention of one row to a memory, or to other values there."""
    size = module.head_dim
    q, keys = module.q_proj(query), [module.k_proj(entry) for entry in memory]
    values = [module.v_proj(entry) for entry in values or memory]
    heads = []
    for head in range(module.num_heads):
        part = slice(head * size, (head + 1) * size)
        pairs = [[x[part] for x in entries] for entries in (keys, values)]
        heads.append(attention_row(q[part], *pairs))
    return module.out_proj(torch.cat(heads))


def abd_layer(
    layer: Any, stream: list[Tensor], source: list[Tensor], reverse: list[Tensor]
) -> list[Tensor]:
    """A layer of ABD-NMT's forward decoder, row by row.

    Args:
        layer: an abd_layer.ForwardLayer, whose modules are used on single rows.
        stream: of one sentence, (C,) each.
        source, reverse: what is read, without padding.
    """
    rows = []
    for i, row in enumerate(stream):
        a = layer.self_attn_layer_norm(
            row + read(layer.self_attn, row, stream[: i + 1])
        )
        both = layer.encoder_attn
        contexts = read(both, a, source) + read(both.reverse, a, reverse)
        a = layer.encoder_attn_layer_norm(a + contexts)
        rows.append(layer.final_layer_norm(a + layer.fc2(layer.fc1(a).relu())))
    return rows


Scores = Callable[[int, list[int], list[int]], list[float]]


def length_penalty(kind: str, alpha: float, n: int) -> float:
    return ((5 + n) / 6) ** alpha if kind == "gnmt" else n**alpha


def search(
    score: Scores,
    *,
    eos: int,
    never: set[int],
    beam: int,
    max_len: int,
    min_len: int = 1,
    kind: str = "gnmt",
    alpha: float = 0.6,
    stop: str = "horizon",
    pairing: str = "rank",
    answer: int | None = None,
    prefix: list[int] | None = None,
    directions: tuple[int, ...] = (L2R, R2L),
) -> list[dict[str, Any]]:
    """Algorithm, section 6, on lists, for one sentence.

    Args:
        score: (direction, own tokens, partner's tokens) -> log-probabilities.

    Returns:
        The answering pool, best first.
    """
    prefix = prefix or []
    each = beam // len(directions)
    among = each if stop == "first" else 2 * each  # candidates that may finish
    live = {d: [(0.0, [], [])] for d in directions}  # (score, tokens, token scores)
    dead = -math.inf
    for d in directions:
        live[d] += [(dead, [], [])] * (each - 1)
    pool: list[dict[str, Any]] = []
    filled = None  # length of the one with which the pool became full
    for step in range(max_len + 1):
        new: dict[int, list[Any]] = {}
        for d in directions:
            candidates = []
            for rank, (total, tokens, _) in enumerate(live[d]):
                partner: list[int] = []
                if len(directions) == 2:
                    others = live[1 - d]
                    partner = others[rank if pairing == "rank" else 0][1]
                row = score(d, tokens, partner)
                for token, value in enumerate(row):
                    if token in never:
                        value = dead
                    if step < min_len and token == eos:
                        value = dead
                    if step >= max_len and token != eos:
                        value = dead
                    if d == L2R and step < min(len(prefix), max_len):
                        value = row[token] if token == prefix[step] else dead
                    candidates.append((total + value, rank, token, value, partner))
            candidates.sort(key=lambda c: (-c[0], c[1], c[2]))
            candidates = candidates[: 2 * each]
            for place, (total, rank, token, _, partner) in enumerate(candidates):
                if token == eos and total > dead and place < among:
                    tokens = live[d][rank][1]
                    natural = tokens if d == L2R else tokens[::-1]
                    if d == R2L and natural[: len(prefix)] != prefix:
                        continue
                    n = step + 1
                    entry = {
                        "direction": d,
                        "tokens": [*natural, eos],
                        "total": total,
                        "score": total / length_penalty(kind, alpha, n),
                        "n": n,
                        "partner": partner,
                    }
                    pool.append(entry)
            going = [c for c in candidates if c[2] != eos][:each]
            rows = []
            for total, rank, token, value, _ in going:
                _, tokens, scores = live[d][rank]
                rows.append((total, [*tokens, token], [*scores, value]))
            for i, row in enumerate(rows):
                if row[0] == dead:
                    if i and rows[0][0] > dead:
                        rows[i] = (dead, rows[0][1], rows[0][2])
                    else:  # nobody lives: rank 1 repeats its last token
                        tokens = live[d][0][1]
                        again = tokens[-1] if tokens else START + d
                        rows[i] = (dead, [*tokens, again], [])
            new[d] = rows
        live = new
        mine = pool if answer is None else [e for e in pool if e["direction"] == answer]
        # sorted() keeps the order of equals: earlier, then L2R, then lower rank
        ranked = sorted(mine, key=lambda e: -e["score"])[:beam]
        answering = directions if answer is None else (answer,)
        best = max(row[0] for d in answering for row in live[d])
        if best == dead:
            break
        if len(ranked) == beam:
            t = step + 1
            filled = filled or t
            longest = max_len + 1
            if stop == "horizon":
                longest = min(longest, math.floor(1.25 * filled) + 5)
            largest = max(
                length_penalty(kind, alpha, t + 1),
                length_penalty(kind, alpha, longest),
            )
            if stop == "first" or best / largest <= ranked[-1]["score"]:
                break
            if t >= longest:
                break
    return ranked


def assert_found(hypotheses: list[Any], expected: list[dict[str, Any]]) -> None:
    """Check that a search's hypotheses are those of :func:`search`, best first."""
    assert len(hypotheses) == len(expected)
    for hypothesis, entry in zip(hypotheses, expected):
        assert hypothesis["tokens"].tolist() == entry["tokens"]
        assert hypothesis["direction"] == ("l2r", "r2l")[entry["direction"]]
        assert abs(float(hypothesis["score"]) - entry["score"]) < 1e-10


START = -10  # stands for the tags, which are in no vocabulary of the scripts
