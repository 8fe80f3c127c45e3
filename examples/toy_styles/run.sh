#!/usr/bin/env bash
# Make the results table of toy_styles from raw text, step by step.
# Its rows: teacher-l2r, lookup, nart-gold, nart, nart-9, enat-phrase, enat-phrase-9,
# enat-map, enat-map-9.
#
# usage: examples/toy_styles/run.sh [WORK]
#   WORK: a new folder (default: work/toy_styles)
#
# Printed by `sbnmt recipe examples/toy_styles --print`; to change it, change
# recipe.yaml. The same command with `--work WORK` instead of --print runs these steps
# itself, goes on after an interrupt, and measures what they cost.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=${1:-work/toy_styles}
PATH=${VENV:-.venv}/bin:$PATH # where scripts/setup.sh installs
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

# what all trainings share
train=(
  --user-dir sbnmt_plugin --task sb_translation --log-format simple --seed 1
  --sb-direction l2r --share-all-embeddings --optimizer adam --adam-betas '(0.9, 0.98)'
  --clip-norm 1.0 --lr 0.003 --lr-scheduler inverse_sqrt --warmup-updates 200
  --dropout 0.1 --max-tokens 1000 --max-epoch 14 --num-workers 0 --keep-last-epochs 3
  --cpu --distributed-world-size 1
)

# and those of enat_transformer_tiny
enat_transformer_tiny=(
  "${train[@]}" --criterion enat_cross_entropy --arch enat_transformer_tiny
)

# what all searches share
search=(--sb-direction l2r --cpu --beam 4 --lenpen 0.6 --max-len-a 2 --max-len-b 5)

# how every row is scored
score=(--text "$work/text" --target tgt --references 4)

# A new folder: nothing of another run shall be taken for this one's
mkdir -p "$(dirname "$work")"
mkdir "$work" "$work/results"

# Write the text
sbnmt prepare examples/toy_styles --output "$work/text"

# Binarise the gold text; its dictionaries are everyone's
sbnmt binarise -s src -t tgt --destdir "$work/data" --trainpref "$work/text/train" \
  --validpref "$work/text/valid" --testpref "$work/text/test" --workers 2 \
  --joined-dictionary

# Train teacher-l2r: Transformer, L2R
fairseq-train "$work/data" "${train[@]}" --save-dir "$work/teacher-l2r" \
  --criterion sb_label_smoothed_cross_entropy --arch transformer_tiny

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/teacher-l2r/model.pt" --last 3 \
  --or-fewer "$work/teacher-l2r"

# Pseudo targets: the L2R teacher's translations
sbnmt translate "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --input "$work/text/train.src" --output "$work/pseudo/l2r.tsv"

# Translate the test set with teacher-l2r
fairseq-generate "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/teacher-l2r.jsonl" \
  --results-path "$work/results/teacher-l2r.generate"

# Score teacher-l2r
sbnmt evaluate "$work/results/teacher-l2r.generate" "${score[@]}" \
  --output "$work/results/teacher-l2r.json"

# The table of phrases that the gold text has
sbnmt phrase-table --output "$work/phrases/phrases" --source "$work/text/train.src" \
  --held-out-source "$work/text/valid.src" --target "$work/text/train.tgt" \
  --held-out-target "$work/text/valid.tgt" \
  --keep-alignments "$work/phrases/phrases.links" --least-count 6

# Look the test set up in the phrase table
sbnmt lookup --table "$work/phrases/phrases" --output "$work/results/lookup.bpe" \
  --input "$work/text/test.src"

# Score lookup
sbnmt evaluate "$work/results/lookup.bpe" "${score[@]}" \
  --output "$work/results/lookup.json"

# Train nart-gold: NART, copied source, gold
fairseq-train "$work/data" "${enat_transformer_tiny[@]}" --save-dir "$work/nart-gold" \
  --enat-input copy

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/nart-gold/model.pt" --last 3 \
  --or-fewer "$work/nart-gold"

# Translate the test set with nart-gold
fairseq-generate "$work/data" "${search[@]}" --path "$work/nart-gold/model.pt" \
  --gen-subset test --max-tokens 4000 --beam 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/nart-gold.jsonl" \
  --results-path "$work/results/nart-gold.generate"

# Score nart-gold
sbnmt evaluate "$work/results/nart-gold.generate" "${score[@]}" \
  --output "$work/results/nart-gold.json"

# Join gold text and pseudo targets: y_pl alone, a pair a sentence
sbnmt triples --source "$work/text/train.src" --target "$work/text/train.tgt" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --output "$work/examples/kd/train" --pairs kd

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s src -t tgt --destdir "$work/data-kd" \
  --trainpref "$work/examples/kd/train" --validpref "$work/text/valid" \
  --testpref "$work/text/test" --workers 2 --srcdict "$work/data/dict.src.txt" \
  --joined-dictionary

# Train nart: NART, copied source
fairseq-train "$work/data-kd" "${enat_transformer_tiny[@]}" --save-dir "$work/nart" \
  --enat-input copy

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/nart/model.pt" --last 3 --or-fewer "$work/nart"

# Translate the test set with nart
fairseq-generate "$work/data" "${search[@]}" --path "$work/nart/model.pt" \
  --gen-subset test --max-tokens 4000 --beam 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/nart.jsonl" \
  --results-path "$work/results/nart.generate"

# Score nart
sbnmt evaluate "$work/results/nart.generate" "${score[@]}" \
  --output "$work/results/nart.json"

# Train enat-phrase: ENAT, phrase table
fairseq-train "$work/data-kd" "${enat_transformer_tiny[@]}" \
  --save-dir "$work/enat-phrase" --enat-table "$work/phrases/phrases" \
  --enat-input phrase

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/enat-phrase/model.pt" --last 3 \
  --or-fewer "$work/enat-phrase"

# Translate the test set with enat-phrase
fairseq-generate "$work/data" "${search[@]}" --path "$work/enat-phrase/model.pt" \
  --gen-subset test --max-tokens 4000 --beam 1 --enat-table "$work/phrases/phrases" \
  --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/enat-phrase.jsonl" \
  --results-path "$work/results/enat-phrase.generate"

# Score enat-phrase
sbnmt evaluate "$work/results/enat-phrase.generate" "${score[@]}" \
  --output "$work/results/enat-phrase.json"

# Train enat-map: ENAT, mapped source
fairseq-train "$work/data-kd" "${enat_transformer_tiny[@]}" \
  --save-dir "$work/enat-map" --enat-input map

# The average of its last 3 checkpoints is the model
sbnmt average --output "$work/enat-map/model.pt" --last 3 --or-fewer "$work/enat-map"

# Translate the test set with enat-map
fairseq-generate "$work/data" "${search[@]}" --path "$work/enat-map/model.pt" \
  --gen-subset test --max-tokens 4000 --beam 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/enat-map.jsonl" \
  --results-path "$work/results/enat-map.generate"

# Score enat-map
sbnmt evaluate "$work/results/enat-map.generate" "${score[@]}" \
  --output "$work/results/enat-map.json"

# Translate the test set with nart-9
fairseq-generate "$work/data" "${search[@]}" --path "$work/nart/model.pt" \
  --gen-subset test --max-tokens 4000 --beam 9 \
  --nat-teacher "$work/teacher-l2r/model.pt" --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/nart-9.jsonl" \
  --results-path "$work/results/nart-9.generate"

# Score nart-9
sbnmt evaluate "$work/results/nart-9.generate" "${score[@]}" \
  --output "$work/results/nart-9.json"

# Translate the test set with enat-phrase-9
fairseq-generate "$work/data" "${search[@]}" --path "$work/enat-phrase/model.pt" \
  --gen-subset test --max-tokens 4000 --beam 9 --enat-table "$work/phrases/phrases" \
  --nat-teacher "$work/teacher-l2r/model.pt" --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/enat-phrase-9.jsonl" \
  --results-path "$work/results/enat-phrase-9.generate"

# Score enat-phrase-9
sbnmt evaluate "$work/results/enat-phrase-9.generate" "${score[@]}" \
  --output "$work/results/enat-phrase-9.json"

# Translate the test set with enat-map-9
fairseq-generate "$work/data" "${search[@]}" --path "$work/enat-map/model.pt" \
  --gen-subset test --max-tokens 4000 --beam 9 \
  --nat-teacher "$work/teacher-l2r/model.pt" --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/enat-map-9.jsonl" \
  --results-path "$work/results/enat-map-9.generate"

# Score enat-map-9
sbnmt evaluate "$work/results/enat-map-9.generate" "${score[@]}" \
  --output "$work/results/enat-map-9.json"

# The table
sbnmt table --recipe examples/toy_styles --work "$work"
