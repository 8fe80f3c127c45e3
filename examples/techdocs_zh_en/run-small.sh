#!/usr/bin/env bash
# Make the results table of techdocs_zh_en-small from raw text, step by step.
# Its rows: teacher-l2r, teacher-r2l, rerank, transformer-long, transformer-pl-long,
# sb-lambda0-long, sb-lambda0-long+rescored, sb-noise-lambda0,
# sb-noise-lambda0+rescored.
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
  --warmup-updates 400 --label-smoothing 0.1 --update-freq 1 --keep-last-epochs 1
  --eval-bleu --eval-bleu-args '{"beam": 2, "max_len_a": 1.2, "max_len_b": 10}'
  --eval-bleu-remove-bpe --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
  --cpu --sb-autocast --encoder-embed-dim 128 --encoder-ffn-embed-dim 256
  --encoder-layers 2 --encoder-attention-heads 4 --decoder-embed-dim 128
  --decoder-ffn-embed-dim 256 --decoder-layers 2 --decoder-attention-heads 4
  --distributed-world-size 1
)

# and those of transformer
transformer=("${train[@]}" --arch transformer --max-tokens 3000)

# and those of sb_transformer
sb_transformer=(
  "${train[@]}" --arch sb_transformer --sb-fusion tanh --sb-lambda 0 --max-tokens 6000
  --sb-probe 500
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
  --sb-direction l2r --total-num-update 2310 --max-epoch 6

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/teacher-l2r/model.pt"

# Pseudo targets: the L2R teacher's translations
sbnmt translate "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --sb-direction l2r --max-tokens 16000 --input "$work/bpe/train.zh" \
  --output "$work/pseudo/l2r.tsv"

# Train teacher-r2l: Transformer, R2L
fairseq-train "$work/data" "${transformer[@]}" --save-dir "$work/teacher-r2l" \
  --sb-direction r2l --total-num-update 2310 --max-epoch 6

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

# Train transformer-long: Transformer, L2R, as many updates
fairseq-train "$work/data" "${transformer[@]}" --save-dir "$work/transformer-long" \
  --sb-direction l2r --max-update 5668 --total-num-update 5668

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/transformer-long/model.pt"

# Translate the test set with transformer-long
fairseq-generate "$work/data" "${search[@]}" --path "$work/transformer-long/model.pt" \
  --sb-direction l2r --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/transformer-long.jsonl" \
  --results-path "$work/results/transformer-long.generate"

# Score transformer-long
sbnmt evaluate "$work/results/transformer-long.generate" "${score[@]}" \
  --output "$work/results/transformer-long.json"

# Join gold text and pseudo targets: y_g and y_pl, a pair each
sbnmt triples --source "$work/bpe/train.zh" --target "$work/bpe/train.en" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --output "$work/examples/pl/train" --pairs pl

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s zh -t en --destdir "$work/data-pl" \
  --trainpref "$work/examples/pl/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.zh.txt" \
  --joined-dictionary

# Train transformer-pl-long: Transformer, y_g + y_pl, as many updates
fairseq-train "$work/data-pl" "${transformer[@]}" \
  --save-dir "$work/transformer-pl-long" --sb-direction l2r --max-update 5668 \
  --total-num-update 5668

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/transformer-pl-long/model.pt"

# Translate the test set with transformer-pl-long
fairseq-generate "$work/data" "${search[@]}" \
  --path "$work/transformer-pl-long/model.pt" --sb-direction l2r --gen-subset test \
  --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/transformer-pl-long.jsonl" \
  --results-path "$work/results/transformer-pl-long.generate"

# Score transformer-pl-long
sbnmt evaluate "$work/results/transformer-pl-long.generate" "${score[@]}" \
  --output "$work/results/transformer-pl-long.json"

# Join gold text and pseudo targets: two triples a sentence
sbnmt triples --source "$work/bpe/train.zh" --target "$work/bpe/train.en" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --pseudo-r2l "$work/pseudo/r2l.tsv" \
  --output "$work/examples/two/train" --triples two

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s zh -t en --destdir "$work/data-two" \
  --trainpref "$work/examples/two/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.zh.txt" \
  --joined-dictionary

# Train sb-lambda0-long: SB-NMT, λ = 0, two triples, as many updates
fairseq-train "$work/data-two" "${sb_transformer[@]}" \
  --save-dir "$work/sb-lambda0-long" --max-update 5668 --total-num-update 5668

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb-lambda0-long/model.pt"

# Translate the test set with sb-lambda0-long
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-lambda0-long/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-lambda0-long.jsonl" \
  --results-path "$work/results/sb-lambda0-long.generate"

# Score sb-lambda0-long
sbnmt evaluate "$work/results/sb-lambda0-long.generate" "${score[@]}" \
  --records "$work/results/sb-lambda0-long.jsonl" \
  --output "$work/results/sb-lambda0-long.json"

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
  --save-dir "$work/sb-noise-lambda0" --total-num-update 4590 --max-epoch 4 \
  --sb-partner-noise 0.5

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

# Translate the test set with sb-lambda0-long+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-lambda0-long/model.pt" \
  --gen-subset test --max-tokens 4000 --sb-rescore 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/sb-lambda0-long+rescored.jsonl" \
  --results-path "$work/results/sb-lambda0-long+rescored.generate"

# Score sb-lambda0-long+rescored
sbnmt evaluate "$work/results/sb-lambda0-long+rescored.generate" "${score[@]}" \
  --records "$work/results/sb-lambda0-long+rescored.jsonl" \
  --output "$work/results/sb-lambda0-long+rescored.json"

# Translate the test set with sb-noise-lambda0+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-noise-lambda0/model.pt" \
  --gen-subset test --max-tokens 4000 --sb-rescore 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/sb-noise-lambda0+rescored.jsonl" \
  --results-path "$work/results/sb-noise-lambda0+rescored.generate"

# Score sb-noise-lambda0+rescored
sbnmt evaluate "$work/results/sb-noise-lambda0+rescored.generate" "${score[@]}" \
  --records "$work/results/sb-noise-lambda0+rescored.jsonl" \
  --output "$work/results/sb-noise-lambda0+rescored.json"

# The table
sbnmt table --recipe examples/techdocs_zh_en --small --work "$work"
