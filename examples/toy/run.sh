#!/usr/bin/env bash
# Make the results table of toy from raw text, step by step.
# Its rows: teacher-l2r, teacher-r2l, sb-shift, sb-shift+rescored.
#
# usage: examples/toy/run.sh [WORK]
#   WORK: a new folder (default: work/toy)
#
# Printed by `sbnmt recipe examples/toy --print`; to change it, change recipe.yaml. The
# same command with `--work WORK` instead of --print runs these steps itself, goes on
# after an interrupt, and measures what they cost.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -d examples/toy ] ||
  { echo "save this script in examples/toy, where it runs" >&2; exit 2; }

work=${1:-work/toy}
PATH=${VENV:-.venv}/bin:$PATH # where scripts/setup.sh installs
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

# what all trainings of transformer_tiny share
transformer_tiny=(
  --user-dir sbnmt_plugin --task sb_translation
  --criterion sb_label_smoothed_cross_entropy --arch transformer_tiny
  --log-format simple --seed 1 --optimizer adam --adam-betas '(0.9, 0.98)'
  --clip-norm 1.0 --lr 0.004 --lr-scheduler inverse_sqrt --warmup-updates 300
  --label-smoothing 0.1 --dropout 0.0 --max-tokens 1500 --max-epoch 12 --num-workers 0
  --keep-last-epochs 3 --cpu --distributed-world-size 1
)

# what all searches share
search=(--cpu --beam 4 --lenpen 0.6 --max-len-a 1.2 --max-len-b 10 --max-tokens 4000)

# how every row is scored
score=(--text "$work/text" --target tgt)

# A new folder: nothing of another run shall be taken for this one's
mkdir -p "$(dirname "$work")"
mkdir "$work" "$work/results"

# Write the text
sbnmt prepare examples/toy --output "$work/text"

# Learn byte-pair merges of src
sbnmt bpe learn --merges 400 --codes "$work/bpe/codes.src" "$work/text/train.src"

# Split the words of src by them
sbnmt bpe apply \
  --codes "$work/bpe/codes.src" "$work/text/train.src" "$work/bpe/train.src"
sbnmt bpe apply \
  --codes "$work/bpe/codes.src" "$work/text/valid.src" "$work/bpe/valid.src"
sbnmt bpe apply \
  --codes "$work/bpe/codes.src" "$work/text/test.src" "$work/bpe/test.src"

# Learn byte-pair merges of tgt
sbnmt bpe learn --merges 400 --codes "$work/bpe/codes.tgt" "$work/text/train.tgt"

# Split the words of tgt by them
sbnmt bpe apply \
  --codes "$work/bpe/codes.tgt" "$work/text/train.tgt" "$work/bpe/train.tgt"
sbnmt bpe apply \
  --codes "$work/bpe/codes.tgt" "$work/text/valid.tgt" "$work/bpe/valid.tgt"
sbnmt bpe apply \
  --codes "$work/bpe/codes.tgt" "$work/text/test.tgt" "$work/bpe/test.tgt"

# Binarise the gold text; its dictionaries are everyone's
sbnmt binarise -s src -t tgt --destdir "$work/data" --trainpref "$work/bpe/train" \
  --validpref "$work/bpe/valid" --testpref "$work/bpe/test" --workers 2

# Train teacher-l2r: Transformer, L2R
fairseq-train "$work/data" "${transformer_tiny[@]}" --save-dir "$work/teacher-l2r" \
  --sb-direction l2r

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/teacher-l2r/model.pt" --last 3 \
  --or-fewer "$work/teacher-l2r"

# Pseudo targets: the L2R teacher's translations
sbnmt pseudo "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --sb-direction l2r --input "$work/bpe/train.src" --output "$work/pseudo/l2r.tsv"

# Train teacher-r2l: Transformer, R2L
fairseq-train "$work/data" "${transformer_tiny[@]}" --save-dir "$work/teacher-r2l" \
  --sb-direction r2l

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/teacher-r2l/model.pt" --last 3 \
  --or-fewer "$work/teacher-r2l"

# Pseudo targets: the R2L teacher's translations
sbnmt pseudo "$work/data" "${search[@]}" --path "$work/teacher-r2l/model.pt" \
  --sb-direction r2l --input "$work/bpe/train.src" --output "$work/pseudo/r2l.tsv"

# Translate the test set with teacher-l2r
fairseq-generate "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --sb-direction l2r --gen-subset test --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/teacher-l2r.jsonl" \
  --results-path "$work/results/teacher-l2r.generate"

# Score teacher-l2r
sbnmt evaluate "$work/results/teacher-l2r.generate" "${score[@]}" \
  --output "$work/results/teacher-l2r.json"

# Translate the test set with teacher-r2l
fairseq-generate "$work/data" "${search[@]}" --path "$work/teacher-r2l/model.pt" \
  --sb-direction r2l --gen-subset test --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/teacher-r2l.jsonl" \
  --results-path "$work/results/teacher-r2l.generate"

# Score teacher-r2l
sbnmt evaluate "$work/results/teacher-r2l.generate" "${score[@]}" \
  --output "$work/results/teacher-r2l.json"

# Join gold text and pseudo targets: two triples a sentence
sbnmt triples --source "$work/bpe/train.src" --target "$work/bpe/train.tgt" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --pseudo-r2l "$work/pseudo/r2l.tsv" \
  --output "$work/examples/two/train" --triples two

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s src -t tgt --destdir "$work/data-two" \
  --trainpref "$work/examples/two/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.src.txt" \
  --tgtdict "$work/data/dict.tgt.txt"

# Train sb-shift: SB-NMT, tanh, λ = 1.0, two triples, future shifted
fairseq-train "$work/data-two" --user-dir sbnmt_plugin --save-dir "$work/sb-shift" \
  --task sb_translation --criterion sb_label_smoothed_cross_entropy \
  --arch sb_transformer_tiny --log-format simple --seed 1 --sb-fusion tanh \
  --sb-lambda 1.0 --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0 \
  --lr 0.004 --lr-scheduler inverse_sqrt --warmup-updates 300 --label-smoothing 0.1 \
  --dropout 0.0 --max-tokens 3000 --max-epoch 15 --num-workers 0 --keep-last-epochs 3 \
  --cpu --sb-future-shift --distributed-world-size 1

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/sb-shift/model.pt" --last 3 --or-fewer "$work/sb-shift"

# Translate the test set with sb-shift
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-shift/model.pt" \
  --gen-subset test --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-shift.jsonl" \
  --results-path "$work/results/sb-shift.generate"

# Score sb-shift
sbnmt evaluate "$work/results/sb-shift.generate" "${score[@]}" \
  --records "$work/results/sb-shift.jsonl" --output "$work/results/sb-shift.json"

# Translate the test set with sb-shift+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-shift/model.pt" \
  --gen-subset test --sb-rescore 2 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-shift+rescored.jsonl" \
  --results-path "$work/results/sb-shift+rescored.generate"

# Score sb-shift+rescored
sbnmt evaluate "$work/results/sb-shift+rescored.generate" "${score[@]}" \
  --records "$work/results/sb-shift+rescored.jsonl" \
  --output "$work/results/sb-shift+rescored.json"

# What the interaction is worth to sb-shift in the search
sbnmt probe-interaction "$work/data" "${search[@]}" --path "$work/sb-shift/model.pt" \
  --input "$work/bpe/test.src" --reference "$work/text/test.tgt" \
  --json "$work/results/interaction/sb-shift.json"

# How much the streams of sb-shift read of each other
sbnmt probe-reading "$work/data" --path "$work/sb-shift/model.pt" --max-tokens 4000 \
  --cpu --json "$work/results/reading/sb-shift.json"

# The table
sbnmt table --recipe examples/toy --work "$work"
