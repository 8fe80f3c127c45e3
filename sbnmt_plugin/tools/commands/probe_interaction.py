r"""Measure the effect of the interaction: decode with it, and without it.

    sbnmt probe-interaction data --path sb/model.pt --input bpe/test.src \
        --reference text/test.tgt [--reference …] [--phonemes | --raw 13a] \
        [--json FILE] \
        [options of fairseq-generate]

It prints tokenised BLEU (BLEU of raw text with --raw; word and phoneme error rate, too,
where lines are words) of three searches with one checkpoint:

    as trained          the search of the paper
    λ = 0               the future attention adds nothing
    partners shuffled   every hypothesis attends to the opposite hypothesis of another
                        sentence of its batch, always the same one

An ABD-NMT model reads nothing of the R2L text instead ("λ = 0"), or the R2L text of
another sentence.
"""

from __future__ import annotations

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.evaluation import add_raw
from sbnmt_plugin.tools.phonemes import error_rates
from sbnmt_plugin.tools.probes import SETTINGS, Prober
from sbnmt_plugin.tools.scoring import bleu_named, tokenised_bleu
from sbnmt_plugin.tools.subwords import MARK, undoing
from sbnmt_plugin.tools.text import read_parallel, refuse_overwriting, refuse_reserved
from sbnmt_plugin.tools.unfinished import write_json


def main() -> None:
    parser = command.parser(__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--input", required=True, help="source text, as binarised")
    add("--reference", action="append", required=True, help="without subwords")
    add("--lowercase", action="store_true", help="ignore case")
    add("--phonemes", action="store_true", help="lines are words: error rates, too")
    add_raw(parser)
    add("--json", help="file to write the scores to")
    args, others = parser.parse_known_args()
    refuse_overwriting(args.json, args.input, *args.reference)
    lines, *references = read_parallel(args.input, *args.reference)
    refuse_reserved(args.input, lines)
    for name, texts in zip(args.reference, references):
        if any(word.endswith(MARK) for text in texts for word in text.split()):
            raise ValueError(
                f"--reference {name} must be without subwords, but has words that end "
                f"in {MARK}: give the tokenised text"
            )
    translator = Prober(others)
    if not all(getattr(m, "bidirectional", False) for m in translator.models):
        raise ValueError(
            "--path must be an sb_transformer, or an abd_transformer: a teacher has no "
            "partner"
        )
    if translator.cfg.dataset.batch_size == 1 or len(lines) == 1:
        raise ValueError(
            "--batch-size must be ≥ 2, and so must the lines of --input: partners are "
            "shuffled within a batch"
        )
    results, told, undo = {}, [], undoing(args.raw)
    for name, (crippled, shift) in SETTINGS.items():
        translator.shifted(shift)
        with crippled(translator.models):
            found, _ = translator.translate(lines)
        texts = [
            undo(translator.text(found[i])) if i in found else ""
            for i in range(len(lines))
        ]
        results[name] = tokenised_bleu(
            texts, references, args.lowercase, args.raw or "none"
        )
        bleu = bleu_named(results[name]["signature"])
        wins = [h["direction"] for h in found.values()].count("l2r")
        share = 100 * wins / max(1, len(found))
        results[name]["L2R wins"] = round(share, 1)
        rates = error_rates(texts, references) if args.phonemes else {}
        results[name] |= {key: rate["score"] for key, rate in rates.items()}
        shown = [f"   {key} {rate['score']:6.2f}" for key, rate in rates.items()]
        told.append(
            f"interaction {name:<18} {bleu} {results[name]['score']:6.2f}   "
            f"L2R wins {share:5.1f} %{''.join(shown)}"
        )
    if args.json:
        write_json(args.json, results)
    print("\n".join(told))
    print(f"signature {results['as trained']['signature']}")
