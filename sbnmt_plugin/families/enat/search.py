"""Search of ENAT: all words of all lengths at once, then the best length.

The beam is over lengths: of k = 2b + 1 hypotheses one has T₀ words, the number that is
expected (see :meth:`enat.model.ENATModel.expected`), and the others one more or less,
two, …, b.  Each place takes its best word; the last is ``</s>``, and no other may be.
With ``--nat-teacher`` the words' log-probabilities are then a teacher's, all candidates
scored in one teacher-forced pass.  Score, as everywhere::

    Σ_t log p(y_t) / lp(T)

Departs from the paper, in which a batch has b of its own beside its beam, and the
teacher's sum is compared as it is or by its mean, which is not said: the mean is
``--sb-length-penalty power``.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import torch
from fairseq import checkpoint_utils
from torch import Tensor

from sbnmt_plugin.checkpoint_checks import check_checkpoints, check_interface
from sbnmt_plugin.layout import L2R, NAMES
from sbnmt_plugin.network.cpu_products import for_processor
from sbnmt_plugin.numerics import DEAD, LOGITS_AT_A_TIME, log_sum_exp, wide
from sbnmt_plugin.search.answers import refuse
from sbnmt_plugin.search.logits_processing import longest_outputs
from sbnmt_plugin.search.options import Symbols
from sbnmt_plugin.search.records import Hypothesis
from sbnmt_plugin.search.registry import Search, register_search
from sbnmt_plugin.search.score_texts import check_scores_texts, score_texts
from sbnmt_plugin.search.scorer import Scorer
from sbnmt_plugin.task_options import caller_files

logger = logging.getLogger(__name__)

FLAG = "--nat-teacher"


class Teacher:
    """Log-probabilities of given texts, by a Transformer that writes L2R.

    It computes in the numbers of its checkpoint, whatever those of the other model are.

    Args:
        model: whose decoder scores texts: see :class:`protocol.Forced`.
        symbols: special ids; ``</s>`` also starts its texts.

    Raises:
        ValueError: another kind of model.
    """

    def __init__(self, model: Any, symbols: Symbols) -> None:
        self.model = model.eval()
        self.symbols = replace(symbols, starts=(symbols.eos,))
        check_scores_texts(model, FLAG)

    def __call__(self, net_input: dict[str, Tensor], tokens: Tensor) -> Tensor:
        """Score all words, (BK, T) in float64; 0 at padding.

        Args:
            net_input: fairseq's, of B sentences.
            tokens: (BK, T) K texts a sentence, ``</s>`` last, padded on the right.
        """
        source = net_input["src_tokens"]
        self.model.to(source.device)
        own = {name: net_input[name] for name in ("src_tokens", "src_lengths")}
        pad, beam = self.symbols.pad, len(tokens) // len(source)
        texts = [tuple(t for t in row if t != pad) for row in tokens.tolist()]
        streams = [
            [(text, 0) for text in texts[first : first + beam]]
            for first in range(0, len(texts), beam)
        ]
        scorers = [Scorer.encode(self.model, own)]
        found = score_texts(scorers, streams, self.symbols, source.device)
        return found.flatten(0, 1)


def load_teacher(path: str, task: Any, symbols: Symbols) -> Teacher:
    """Load the teacher of a checkpoint, on the data of a task of ours.

    Args:
        path: of the checkpoint.

    Raises:
        FileNotFoundError, ValueError: a damaged file; a model of another task,
            direction, family or dictionary.
    """
    (checkpoint,) = check_checkpoints([path], f"({FLAG})")
    check_interface(checkpoint, ("tokenizer", "bpe"))  # neither is used
    cfg = task.cfg
    settings = {
        "data": cfg.data,
        "source_lang": cfg.source_lang,
        "target_lang": cfg.target_lang,
        "eval_bleu": False,
        **dict.fromkeys(caller_files()),
    }
    loaded = checkpoint_utils.load_model_ensemble_and_task([path], settings)
    (model,), _, trained = loaded
    if (direction := str(trained.cfg.sb_direction)) != "l2r":
        raise ValueError(
            f"{FLAG} {path} must be a model of --sb-direction l2r, but is one of "
            f"{direction}: choose another"
        )
    return Teacher(for_processor(model), symbols)


@register_search("parallel")
class ParallelGenerator(Search):
    """One pass of a decoder that writes all words at once; see the module.

    Args:
        given, named: as of :class:`registry.Search`; one model, an
            :class:`enat.model.ENATModel`.

    Attributes:
        around: b.
        teacher: scores the words in the model's place; None: nobody does.
    """

    shares_beam = False
    described = "an enat_transformer, which writes all words at once"

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        (self.model,) = self.models
        self.teacher: Teacher | None = None
        beam = self.options.beam
        self.around = (beam - 1) // 2
        if beam % 2 == 0:
            lengths = 2 * self.around + 1
            logger.warning("--beam %d is even; trying %d lengths", beam, lengths)

    def unsupported(self) -> dict[str, Any]:
        """See :class:`registry.Search`: words do not come one after the other."""
        return {
            "an ensemble": len(self.models) > 1,
            "--no-repeat-ngram-size": bool(self.options.no_repeat_ngram_size),
            "--sb-stop first": self.options.stop == "first",
            "--unkpen": bool(self.options.unkpen),
            "--print-alignment": self.options.print_alignment,
            "--sb-trace": self.tracer,
        }

    def prepare(self, task: Any) -> None:
        """Load the teacher of ``--nat-teacher``, once for all searches of a task.

        Raises:
            ValueError: as :func:`load_teacher`; one that reads shorter sources.
        """
        if (path := task.cfg.nat_teacher) is not None:
            if path not in task.loaded:
                task.loaded[path] = load_teacher(path, task, self.symbols)
            self.teacher = task.loaded[path]
            reading = self.teacher.model, self.model, task
            most, *others = (reader.max_positions()[0] for reader in reading)
            if most < min(others):
                raise ValueError(
                    f"{FLAG} {path} must read sources as long as the model's, but "
                    f"reads {most} tokens: add --max-source-positions {most}, or "
                    "choose another"
                )

    def translate(
        self, sample: dict[str, Any], prefix: Tensor
    ) -> list[list[Hypothesis]]:
        """Write all lengths, and choose.

        Args:
            sample: fairseq's batch; also ``lookup_tokens`` (B, Z) of ``net_input`` is
                read, where the model wants them.

        Returns:
            A hypothesis for each length of every sentence, best first.

        Raises:
            ValueError: prefixes; lengths that nothing can have.
        """
        self._refuse({"--prefix-size": prefix.size(1) > 0})
        net_input = sample["net_input"]
        source = net_input["src_tokens"]
        inputs = self.model.read(source, net_input.get("lookup_tokens"))
        lengths, new = self.lengths(source, self.model.expected(inputs.real))
        rows = torch.arange(len(source), device=source.device)
        rows = rows.repeat_interleave(lengths.size(1))
        tokens, gained = self.write(inputs.select(rows), lengths.flatten())
        if self.teacher is not None:
            gained = self.teacher(net_input, tokens)
        answers = self.answers(tokens, gained, lengths, new, sample)
        if self.recorder is not None:
            name = NAMES[L2R]
            self.recorder(sample, [(name, {name: best}) for best, *_ in answers])
        return answers

    def lengths(self, source: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        """Choose the candidates' lengths with ``</s>``; tell doubles apart, (B, k).

        Args:
            source: (B, S).
            expected: T₀, (B,).
        """
        models = [self.model, *([self.teacher.model] if self.teacher else [])]
        longest = longest_outputs(models, source, self.symbols, self.options) + 1
        near = torch.arange(-self.around, self.around + 1, device=source.device)
        least = max(2, self.options.min_len + 1)
        found = (expected[:, None] + near).clamp(min=least)
        found = torch.minimum(found, longest[:, None])  # ascending
        new = torch.ones_like(found, dtype=torch.bool)
        new[:, 1:] = found[:, 1:] != found[:, :-1]
        return found, new

    def write(self, inputs: Any, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Choose the best word of every place; return it and its log-probability.

        Args:
            inputs: of N rows: see :class:`enat.decoder.DecoderInput`.
            lengths: (N,).

        Returns:
            (N, T) each; padding, and 0, behind the text.
        """
        places = torch.arange(int(lengths.max()), device=lengths.device)
        written = places < lengths[:, None]
        last = places == lengths[:, None] - 1
        decoder, eos = self.model.decoder, self.symbols.eos
        features = decoder.extract_features(inputs, written)[written]
        ends = last[written]
        banned = torch.tensor([*self.symbols.never, eos], device=ends.device)
        words, values = [], []
        size = max(1, LOGITS_AT_A_TIME // len(decoder.dictionary))
        for part, end in zip(features.split(size), ends.split(size)):
            logits = decoder.output_layer(part)
            logits = logits.to(wide(logits.dtype))
            norm, ending = log_sum_exp(logits), logits[:, eos].clone()
            logits[:, banned] = DEAD
            best, word = logits.max(-1)
            words.append(word.masked_fill(end, eos))
            values.append(torch.where(end, ending, best) - norm)
        tokens = torch.full_like(written, self.symbols.pad, dtype=torch.long)
        tokens[written] = torch.cat(words)
        gained = torch.zeros(written.shape, dtype=values[0].dtype, device=ends.device)
        gained[written] = torch.cat(values)
        return tokens, gained

    def answers(
        self, tokens: Tensor, gained: Tensor, lengths: Tensor, new: Tensor, sample: Any
    ) -> list[list[Hypothesis]]:
        """Make fairseq's dict of every candidate, best first, of equals the shorter.

        Args:
            tokens, gained: (N, T).
            lengths, new: (B, k), N = B k.
            sample: fairseq's batch.
        """
        tokens, gained, lengths, new = (x.cpu() for x in (tokens, gained, lengths, new))
        total = gained.to(torch.float64).sum(1).view_as(lengths)
        score = total / self.options.penalty.worth(lengths)
        score = score.masked_fill(~(new & score.isfinite()), DEAD)
        score, order = score.sort(stable=True, dim=1, descending=True)
        total = total.gather(1, order)
        many = lengths.size(1)
        found: list[list[Hypothesis]] = []
        sizes, places = lengths.tolist(), order.tolist()
        alive = (score > DEAD).sum(1).tolist()
        for b, count in enumerate(alive):
            if not count:
                refuse(True, sample, b)
            found.append([])
            for i, place in enumerate(places[b][:count]):
                row, size = b * many + place, sizes[b][place]
                found[-1].append(
                    {
                        "tokens": tokens[row, :size],
                        "score": score[b, i],
                        "total": total[b, i],
                        "attention": None,
                        "alignment": torch.empty(0),
                        "positional_scores": gained[row, :size],
                        "direction": NAMES[L2R],
                        "partner_tokens": None,
                    }
                )
        return found
