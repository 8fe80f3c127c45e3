#!/usr/bin/env bash
# Make the results table of toy_swap from raw text, step by step.
# Its rows: teacher-l2r, teacher-back, two-way, two-way-back, multilingual,
# multilingual-back.
#
# usage: examples/toy_swap/run.sh [WORK]
#   WORK: a new folder (default: work/toy_swap)
#
# Printed by `sbnmt recipe examples/toy_swap --print`; to change it, change recipe.yaml.
# The same command with `--work WORK` instead of --print runs these steps itself, goes
# on after an interrupt, and measures what they cost.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=${1:-work/toy_swap}
PATH=${VENV:-.venv}/bin:$PATH # where scripts/setup.sh installs
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

# what all trainings share
train=(
  --user-dir sbnmt_plugin --task sb_translation --log-format simple --seed 1
  --sb-direction l2r --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0
  --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 200 --dropout 0.0
  --batch-size 64 --max-tokens 2000 --max-epoch 15 --num-workers 0 --keep-last-epochs 3
  --cpu --distributed-world-size 1
)

# and those of transformer_tiny
transformer_tiny=(
  "${train[@]}" --criterion sb_label_smoothed_cross_entropy --arch transformer_tiny
)

# what all searches share
search=(
  --sb-direction l2r --gen-subset test --beam 4 --lenpen 0.6 --max-len-a 1 --max-len-b 5
  --max-tokens 4000 --cpu --user-dir sbnmt_plugin --task sb_translation
)

# how every row is scored
score=(--text "$work/text")

# A new folder: nothing of another run shall be taken for this one's
mkdir -p "$(dirname "$work")"
mkdir "$work" "$work/results"

# Write the text
sbnmt prepare examples/toy_swap --output "$work/text"

# Binarise the gold text; its dictionaries are everyone's
sbnmt binarise -s src -t tgt --destdir "$work/data" --trainpref "$work/text/train" \
  --validpref "$work/text/valid" --testpref "$work/text/test" --workers 2

# Train teacher-l2r: Transformer, L2R
fairseq-train "$work/data" "${transformer_tiny[@]}" --save-dir "$work/teacher-l2r"

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/teacher-l2r/model.pt" --last 3 \
  --or-fewer "$work/teacher-l2r"

# Translate the test set with teacher-l2r
fairseq-generate "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --sb-records "$work/results/teacher-l2r.jsonl" \
  --results-path "$work/results/teacher-l2r.generate"

# Score teacher-l2r
sbnmt evaluate "$work/results/teacher-l2r.generate" "${score[@]}" --target tgt \
  --output "$work/results/teacher-l2r.json"

# Train teacher-back: Transformer, back
fairseq-train "$work/data" "${transformer_tiny[@]}" --save-dir "$work/teacher-back" \
  --source-lang tgt --target-lang src

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/teacher-back/model.pt" --last 3 \
  --or-fewer "$work/teacher-back"

# Translate the test set with teacher-back
fairseq-generate "$work/data" "${search[@]}" --path "$work/teacher-back/model.pt" \
  --source-lang tgt --target-lang src --sb-records "$work/results/teacher-back.jsonl" \
  --results-path "$work/results/teacher-back.generate"

# Score teacher-back
sbnmt evaluate "$work/results/teacher-back.generate" "${score[@]}" --target src \
  --output "$work/results/teacher-back.json"

# Train two-way: Two-way
fairseq-train "$work/data" "${train[@]}" --save-dir "$work/two-way" \
  --criterion two_way_cross_entropy --arch two_way_tiny

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/two-way/model.pt" --last 3 --or-fewer "$work/two-way"

# Translate the test set with two-way
fairseq-generate "$work/data" "${search[@]}" --path "$work/two-way/model.pt" \
  --sb-records "$work/results/two-way.jsonl" \
  --results-path "$work/results/two-way.generate"

# Score two-way
sbnmt evaluate "$work/results/two-way.generate" "${score[@]}" --target tgt \
  --output "$work/results/two-way.json"

# Write every pair both ways, a tag before the source
sbnmt both-ways --text "$work/text" -s src -t tgt --output "$work/examples/both-ways"

# Binarise them, with one dictionary, which has the tags
sbnmt binarise -s src -t tgt --destdir "$work/data-both-ways" \
  --trainpref "$work/examples/both-ways/train" \
  --validpref "$work/examples/both-ways/valid" \
  --testpref "$work/examples/both-ways/test" --workers 2 --joined-dictionary

# Train multilingual: Multilingual Transformer
fairseq-train "$work/data-both-ways" "${transformer_tiny[@]}" \
  --save-dir "$work/multilingual"

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/multilingual/model.pt" --last 3 \
  --or-fewer "$work/multilingual"

# Translate the test set with multilingual
fairseq-generate "$work/data-both-ways" "${search[@]}" \
  --path "$work/multilingual/model.pt" --sb-records "$work/results/multilingual.jsonl" \
  --results-path "$work/results/multilingual.generate"

# Score multilingual
sbnmt evaluate "$work/results/multilingual.generate" "${score[@]}" --target tgt \
  --output "$work/results/multilingual.json"

# Translate the test set with two-way-back
fairseq-generate "$work/data" "${search[@]}" --path "$work/two-way/model.pt" \
  --source-lang tgt --target-lang src --sb-records "$work/results/two-way-back.jsonl" \
  --results-path "$work/results/two-way-back.generate"

# Score two-way-back
sbnmt evaluate "$work/results/two-way-back.generate" "${score[@]}" --target src \
  --output "$work/results/two-way-back.json"

# Binarise the test set the other way round, by its dictionary
sbnmt binarise -s src -t tgt --destdir "$work/data-both-ways-back" \
  --testpref "$work/examples/both-ways/back" --workers 2 \
  --srcdict "$work/data-both-ways/dict.src.txt" --joined-dictionary

# Translate the test set with multilingual-back
fairseq-generate "$work/data-both-ways-back" "${search[@]}" \
  --path "$work/multilingual/model.pt" \
  --sb-records "$work/results/multilingual-back.jsonl" \
  --results-path "$work/results/multilingual-back.generate"

# Score multilingual-back
sbnmt evaluate "$work/results/multilingual-back.generate" "${score[@]}" --target src \
  --output "$work/results/multilingual-back.json"

# The table
sbnmt table --recipe examples/toy_swap --work "$work"
