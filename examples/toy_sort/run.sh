#!/usr/bin/env bash
# Make the results table of toy_sort from raw text, step by step.
# Its rows: rnnsearch, ba-source, ba-target, ba.
#
# usage: examples/toy_sort/run.sh [WORK]
#   WORK: a new folder (default: work/toy_sort)
#
# Printed by `sbnmt recipe examples/toy_sort --print`; to change it, change recipe.yaml.
# The same command with `--work WORK` instead of --print runs these steps itself, goes
# on after an interrupt, and measures what they cost.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=${1:-work/toy_sort}
PATH=${VENV:-.venv}/bin:$PATH # where scripts/setup.sh installs
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

# what all trainings share
train=(
  --user-dir sbnmt_plugin --task sb_translation
  --criterion sb_label_smoothed_cross_entropy --log-format simple --seed 1
  --sb-direction l2r --optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-6
  --clip-norm 1.0 --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 200
  --dropout 0.0 --max-tokens 1000 --max-epoch 8 --num-workers 0 --keep-last-epochs 3
  --cpu --label-smoothing 0 --encoder-embed-dim 64 --encoder-hidden-size 64
  --decoder-embed-dim 64 --decoder-hidden-size 64 --distributed-world-size 1
)

# what all searches share
search=(
  --sb-direction l2r --gen-subset test --beam 4 --lenpen 0.6 --max-len-a 2
  --max-len-b 10 --max-tokens 4000 --cpu --user-dir sbnmt_plugin --task sb_translation
)

# how every row is scored
score=(--text "$work/text" --target tgt)

# A new folder: nothing of another run shall be taken for this one's
mkdir -p "$(dirname "$work")"
mkdir "$work" "$work/results"

# Write the text
sbnmt prepare examples/toy_sort --output "$work/text"

# Binarise the gold text; its dictionaries are everyone's
sbnmt binarise -s src -t tgt --destdir "$work/data" --trainpref "$work/text/train" \
  --validpref "$work/text/valid" --testpref "$work/text/test" --workers 2

# Train rnnsearch: RNNsearch*
fairseq-train "$work/data" "${train[@]}" --save-dir "$work/rnnsearch" --arch rnnsearch

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/rnnsearch/model.pt" --last 3 \
  --or-fewer "$work/rnnsearch"

# Translate the test set with rnnsearch
fairseq-generate "$work/data" "${search[@]}" --path "$work/rnnsearch/model.pt" \
  --sb-records "$work/results/rnnsearch.jsonl" \
  --results-path "$work/results/rnnsearch.generate"

# Score rnnsearch
sbnmt evaluate "$work/results/rnnsearch.generate" "${score[@]}" \
  --output "$work/results/rnnsearch.json"

# Train ba-source: SA-NMT
fairseq-train "$work/data" "${train[@]}" --save-dir "$work/ba-source" --arch sa_nmt

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/ba-source/model.pt" --last 3 \
  --or-fewer "$work/ba-source"

# Translate the test set with ba-source
fairseq-generate "$work/data" "${search[@]}" --path "$work/ba-source/model.pt" \
  --sb-records "$work/results/ba-source.jsonl" \
  --results-path "$work/results/ba-source.generate"

# Score ba-source
sbnmt evaluate "$work/results/ba-source.generate" "${score[@]}" \
  --output "$work/results/ba-source.json"

# Train ba-target: TA-NMT
fairseq-train "$work/data" "${train[@]}" --save-dir "$work/ba-target" --arch ta_nmt

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/ba-target/model.pt" --last 3 \
  --or-fewer "$work/ba-target"

# Translate the test set with ba-target
fairseq-generate "$work/data" "${search[@]}" --path "$work/ba-target/model.pt" \
  --sb-records "$work/results/ba-target.jsonl" \
  --results-path "$work/results/ba-target.generate"

# Score ba-target
sbnmt evaluate "$work/results/ba-target.generate" "${score[@]}" \
  --output "$work/results/ba-target.json"

# Train ba: BA-NMT
fairseq-train "$work/data" "${train[@]}" --save-dir "$work/ba" --arch ba_nmt

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/ba/model.pt" --last 3 --or-fewer "$work/ba"

# Translate the test set with ba
fairseq-generate "$work/data" "${search[@]}" --path "$work/ba/model.pt" \
  --sb-records "$work/results/ba.jsonl" --results-path "$work/results/ba.generate"

# Score ba
sbnmt evaluate "$work/results/ba.generate" "${score[@]}" \
  --output "$work/results/ba.json"

# Compare the attention of rnnsearch with the links that are known
sbnmt aer "$work/data" --path "$work/rnnsearch/model.pt" --sb-direction l2r \
  --max-tokens 4000 --cpu --input "$work/text/test.src" \
  --reference "$work/text/test.tgt" --gold "$work/text/test.links" \
  --output "$work/results/aer/rnnsearch.links" \
  --json "$work/results/aer/rnnsearch.json"

# Compare the attention of ba-source with the links that are known
sbnmt aer "$work/data" --path "$work/ba-source/model.pt" --sb-direction l2r \
  --max-tokens 4000 --cpu --input "$work/text/test.src" \
  --reference "$work/text/test.tgt" --gold "$work/text/test.links" \
  --output "$work/results/aer/ba-source.links" \
  --json "$work/results/aer/ba-source.json"

# Compare the attention of ba-target with the links that are known
sbnmt aer "$work/data" --path "$work/ba-target/model.pt" --sb-direction l2r \
  --max-tokens 4000 --cpu --input "$work/text/test.src" \
  --reference "$work/text/test.tgt" --gold "$work/text/test.links" \
  --output "$work/results/aer/ba-target.links" \
  --json "$work/results/aer/ba-target.json"

# Compare the attention of ba with the links that are known
sbnmt aer "$work/data" --path "$work/ba/model.pt" --sb-direction l2r --max-tokens 4000 \
  --cpu --input "$work/text/test.src" --reference "$work/text/test.tgt" \
  --gold "$work/text/test.links" --output "$work/results/aer/ba.links" \
  --json "$work/results/aer/ba.json"

# The table
sbnmt table --recipe examples/toy_sort --work "$work"
