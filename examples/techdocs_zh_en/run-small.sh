#!/usr/bin/env bash
# Make the results table of techdocs_zh_en-small from raw text, step by step.
# Its rows: teacher-l2r, teacher-r2l, rerank, transformer-pl, teacher-both,
# teacher-both+rescored, sb-lambda0, sb-lambda0+rescored, sb-noise-lambda0,
# sb-noise-lambda0+rescored, sb-noise-shift-dropped, sb-noise-shift-dropped+rescored.
#
# usage: examples/techdocs_zh_en/run-small.sh WORK DATA
#   WORK: a new folder (default: work/techdocs_zh_en-small)
#   DATA: a folder with train, valid and test .zh and .en, as README.md says
#
# Printed by `sbnmt recipe examples/techdocs_zh_en --small --print`; to change it,
# change recipe.yaml. The same command with `--work WORK --data DATA` instead of --print
# runs these steps itself, goes on after an interrupt, and measures what they cost.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=${1:-work/techdocs_zh_en-small}
data=${2:?"give WORK and DATA, as said above"}
PATH=${VENV:-.venv}/bin:$PATH # where scripts/setup.sh installs
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

# what all trainings share
train=(
  --user-dir sbnmt_plugin --task sb_translation
  --criterion sb_label_smoothed_cross_entropy --log-format simple --seed 1
  --share-all-embeddings --dropout 0.1 --weight-decay 0 --optimizer adam
  --adam-betas '(0.9, 0.98)' --clip-norm 0 --lr 0.003 --lr-scheduler polynomial_decay
  --warmup-updates 400 --label-smoothing 0.1 --update-freq 1 --max-update 5668
  --keep-last-epochs 1 --eval-bleu
  --eval-bleu-args '{"beam": 2, "max_len_a": 1.2, "max_len_b": 10}'
  --eval-bleu-remove-bpe --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
  --total-num-update 5668 --num-workers 0 --cpu --sb-autocast --encoder-embed-dim 128
  --encoder-ffn-embed-dim 256 --encoder-layers 2 --encoder-attention-heads 4
  --decoder-embed-dim 128 --decoder-ffn-embed-dim 256 --decoder-layers 2
  --decoder-attention-heads 4 --distributed-world-size 1
)

# and those of transformer
transformer=("${train[@]}" --arch transformer --max-tokens 3000)

# and those of sb_transformer
sb_transformer=(
  "${train[@]}" --arch sb_transformer --sb-fusion tanh --max-tokens 6000 --sb-probe 500
)

# what all searches share
search=(--cpu --beam 4 --lenpen 0.6 --max-len-a 1.2 --max-len-b 10)

# how every row is scored
score=(--text "$work/text" --target en --lowercase --detokenise en)

# A new folder: nothing of another run shall be taken for this one's
mkdir -p "$(dirname "$work")"
mkdir "$work" "$work/results"

# Tokenise the raw text
sbnmt prepare examples/techdocs_zh_en --output "$work/text" --first 65500 \
  --words 12 60 --lowercase --data "$data"

# Learn byte-pair merges of zh and en
sbnmt bpe learn --merges 8000 \
  --codes "$work/bpe/codes" "$work/text/train.zh" "$work/text/train.en"

# Split the words of zh by them
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/train.zh" "$work/bpe/train.zh"
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/valid.zh" "$work/bpe/valid.zh"
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/test.zh" "$work/bpe/test.zh"

# Split the words of en by them
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/train.en" "$work/bpe/train.en"
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/valid.en" "$work/bpe/valid.en"
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/test.en" "$work/bpe/test.en"

# Binarise the gold text; its dictionaries are everyone's
sbnmt binarise -s zh -t en --destdir "$work/data" --trainpref "$work/bpe/train" \
  --validpref "$work/bpe/valid" --testpref "$work/bpe/test" --workers 2 \
  --joined-dictionary

# Train teacher-l2r: Transformer, L2R
fairseq-train "$work/data" "${transformer[@]}" --save-dir "$work/teacher-l2r" \
  --sb-direction l2r

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/teacher-l2r/model.pt"

# Pseudo targets: the L2R teacher's translations
sbnmt translate "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --sb-direction l2r --max-tokens 16000 --input "$work/bpe/train.zh" \
  --output "$work/pseudo/l2r.tsv"

# Train teacher-r2l: Transformer, R2L
fairseq-train "$work/data" "${transformer[@]}" --save-dir "$work/teacher-r2l" \
  --sb-direction r2l

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/teacher-r2l/model.pt"

# Pseudo targets: the R2L teacher's translations
sbnmt translate "$work/data" "${search[@]}" --path "$work/teacher-r2l/model.pt" \
  --sb-direction r2l --max-tokens 16000 --input "$work/bpe/train.zh" \
  --output "$work/pseudo/r2l.tsv"

# Translate the test set with teacher-l2r
fairseq-generate "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --sb-direction l2r --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/teacher-l2r.jsonl" \
  --results-path "$work/results/teacher-l2r.generate"

# Score teacher-l2r
sbnmt evaluate "$work/results/teacher-l2r.generate" "${score[@]}" \
  --output "$work/results/teacher-l2r.json"

# Translate the test set with teacher-r2l
fairseq-generate "$work/data" "${search[@]}" --path "$work/teacher-r2l/model.pt" \
  --sb-direction r2l --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/teacher-r2l.jsonl" \
  --results-path "$work/results/teacher-r2l.generate"

# Score teacher-r2l
sbnmt evaluate "$work/results/teacher-r2l.generate" "${score[@]}" \
  --output "$work/results/teacher-r2l.json"

# Translate the test set with both teachers together
sbnmt rerank "$work/data" "${search[@]}" --l2r "$work/teacher-l2r/model.pt" \
  --r2l "$work/teacher-r2l/model.pt" --max-tokens 4000 --beam 10 \
  --input "$work/bpe/test.zh" --output "$work/results/rerank.tsv"

# Score rerank
sbnmt evaluate "$work/results/rerank.tsv" "${score[@]}" \
  --output "$work/results/rerank.json"

# Join gold text and pseudo targets: y_g and y_pl, a pair each
sbnmt triples --source "$work/bpe/train.zh" --target "$work/bpe/train.en" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --output "$work/examples/pl/train" --pairs pl

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s zh -t en --destdir "$work/data-pl" \
  --trainpref "$work/examples/pl/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.zh.txt" \
  --joined-dictionary

# Train transformer-pl: Transformer, y_g + y_pl
fairseq-train "$work/data-pl" "${transformer[@]}" --save-dir "$work/transformer-pl" \
  --sb-direction l2r

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/transformer-pl/model.pt"

# Translate the test set with transformer-pl
fairseq-generate "$work/data" "${search[@]}" --path "$work/transformer-pl/model.pt" \
  --sb-direction l2r --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/transformer-pl.jsonl" \
  --results-path "$work/results/transformer-pl.generate"

# Score transformer-pl
sbnmt evaluate "$work/results/transformer-pl.generate" "${score[@]}" \
  --output "$work/results/transformer-pl.json"

# Train teacher-both: SB-NMT, λ = 0, gold
fairseq-train "$work/data" "${sb_transformer[@]}" --save-dir "$work/teacher-both" \
  --sb-lambda 0

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/teacher-both/model.pt"

# Translate the test set with teacher-both
fairseq-generate "$work/data" "${search[@]}" --path "$work/teacher-both/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/teacher-both.jsonl" \
  --results-path "$work/results/teacher-both.generate"

# Score teacher-both
sbnmt evaluate "$work/results/teacher-both.generate" "${score[@]}" \
  --records "$work/results/teacher-both.jsonl" \
  --output "$work/results/teacher-both.json"

# Join gold text and pseudo targets: two triples a sentence
sbnmt triples --source "$work/bpe/train.zh" --target "$work/bpe/train.en" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --pseudo-r2l "$work/pseudo/r2l.tsv" \
  --output "$work/examples/two/train" --triples two

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s zh -t en --destdir "$work/data-two" \
  --trainpref "$work/examples/two/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.zh.txt" \
  --joined-dictionary

# Train sb-lambda0: SB-NMT, λ = 0, two triples
fairseq-train "$work/data-two" "${sb_transformer[@]}" --save-dir "$work/sb-lambda0" \
  --sb-lambda 0

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb-lambda0/model.pt"

# Translate the test set with sb-lambda0
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-lambda0/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-lambda0.jsonl" \
  --results-path "$work/results/sb-lambda0.generate"

# Score sb-lambda0
sbnmt evaluate "$work/results/sb-lambda0.generate" "${score[@]}" \
  --records "$work/results/sb-lambda0.jsonl" --output "$work/results/sb-lambda0.json"

# Join gold text and pseudo targets: two triples a sentence, and gold text twice
sbnmt triples --source "$work/bpe/train.zh" --target "$work/bpe/train.en" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --pseudo-r2l "$work/pseudo/r2l.tsv" \
  --output "$work/examples/three/train" --triples three

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s zh -t en --destdir "$work/data-three" \
  --trainpref "$work/examples/three/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.zh.txt" \
  --joined-dictionary

# Train sb-noise-lambda0: SB-NMT, λ = 0, three triples, noise
fairseq-train "$work/data-three" "${sb_transformer[@]}" \
  --save-dir "$work/sb-noise-lambda0" --sb-lambda 0 --sb-partner-noise 0.5

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb-noise-lambda0/model.pt"

# Translate the test set with sb-noise-lambda0
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-noise-lambda0/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-noise-lambda0.jsonl" \
  --results-path "$work/results/sb-noise-lambda0.generate"

# Score sb-noise-lambda0
sbnmt evaluate "$work/results/sb-noise-lambda0.generate" "${score[@]}" \
  --records "$work/results/sb-noise-lambda0.jsonl" \
  --output "$work/results/sb-noise-lambda0.json"

# Train sb-noise-shift-dropped: SB-NMT, λ = 1, three triples, noise, future shifted,
# half of the partners dropped
fairseq-train "$work/data-three" "${sb_transformer[@]}" \
  --save-dir "$work/sb-noise-shift-dropped" --sb-lambda 1 --sb-future-dropout 0 \
  --sb-partner-noise 0.5 --sb-future-shift --sb-partner-dropout 0.5

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb-noise-shift-dropped/model.pt"

# Translate the test set with sb-noise-shift-dropped
fairseq-generate "$work/data" "${search[@]}" \
  --path "$work/sb-noise-shift-dropped/model.pt" --gen-subset test --max-tokens 4000 \
  --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-noise-shift-dropped.jsonl" \
  --results-path "$work/results/sb-noise-shift-dropped.generate"

# Score sb-noise-shift-dropped
sbnmt evaluate "$work/results/sb-noise-shift-dropped.generate" "${score[@]}" \
  --records "$work/results/sb-noise-shift-dropped.jsonl" \
  --output "$work/results/sb-noise-shift-dropped.json"

# Translate the test set with teacher-both+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/teacher-both/model.pt" \
  --gen-subset test --max-tokens 4000 --sb-rescore 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/teacher-both+rescored.jsonl" \
  --results-path "$work/results/teacher-both+rescored.generate"

# Score teacher-both+rescored
sbnmt evaluate "$work/results/teacher-both+rescored.generate" "${score[@]}" \
  --records "$work/results/teacher-both+rescored.jsonl" \
  --output "$work/results/teacher-both+rescored.json"

# Translate the test set with sb-lambda0+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-lambda0/model.pt" \
  --gen-subset test --max-tokens 4000 --sb-rescore 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/sb-lambda0+rescored.jsonl" \
  --results-path "$work/results/sb-lambda0+rescored.generate"

# Score sb-lambda0+rescored
sbnmt evaluate "$work/results/sb-lambda0+rescored.generate" "${score[@]}" \
  --records "$work/results/sb-lambda0+rescored.jsonl" \
  --output "$work/results/sb-lambda0+rescored.json"

# Translate the test set with sb-noise-lambda0+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-noise-lambda0/model.pt" \
  --gen-subset test --max-tokens 4000 --sb-rescore 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/sb-noise-lambda0+rescored.jsonl" \
  --results-path "$work/results/sb-noise-lambda0+rescored.generate"

# Score sb-noise-lambda0+rescored
sbnmt evaluate "$work/results/sb-noise-lambda0+rescored.generate" "${score[@]}" \
  --records "$work/results/sb-noise-lambda0+rescored.jsonl" \
  --output "$work/results/sb-noise-lambda0+rescored.json"

# Translate the test set with sb-noise-shift-dropped+rescored
fairseq-generate "$work/data" "${search[@]}" \
  --path "$work/sb-noise-shift-dropped/model.pt" --gen-subset test --max-tokens 4000 \
  --sb-rescore 1 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-noise-shift-dropped+rescored.jsonl" \
  --results-path "$work/results/sb-noise-shift-dropped+rescored.generate"

# Score sb-noise-shift-dropped+rescored
sbnmt evaluate "$work/results/sb-noise-shift-dropped+rescored.generate" "${score[@]}" \
  --records "$work/results/sb-noise-shift-dropped+rescored.jsonl" \
  --output "$work/results/sb-noise-shift-dropped+rescored.json"

# What the interaction is worth to sb-noise-shift-dropped in the search
sbnmt probe-interaction "$work/data" "${search[@]}" \
  --path "$work/sb-noise-shift-dropped/model.pt" --input "$work/bpe/test.zh" \
  --reference "$work/text/test.en" --max-tokens 4000 \
  --json "$work/results/interaction/sb-noise-shift-dropped.json" --lowercase

# How much the streams of sb-noise-shift-dropped read of each other
sbnmt probe-reading "$work/data" --path "$work/sb-noise-shift-dropped/model.pt" \
  --max-tokens 4000 --cpu --json "$work/results/reading/sb-noise-shift-dropped.json"

# The table
sbnmt table --recipe examples/techdocs_zh_en --small --work "$work"
