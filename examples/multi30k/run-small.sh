#!/usr/bin/env bash
# Make the results table of multi30k-small from raw text, step by step.
# Its rows: teacher-l2r, teacher-r2l, rerank, transformer-pl, teacher-both,
# teacher-both+rescored, sb-lambda0, sb-lambda0+rescored, sb, sb+rescored, sb-staged,
# sb-staged+rescored, sb-noise-lambda0, sb-noise-lambda0+rescored, sb-reader,
# sb-reader+rescored, sb-reader-two, sb-reader-two+rescored, sb-reader-own,
# sb-reader-own+rescored.
#
# usage: examples/multi30k/run-small.sh WORK DATA
#   WORK: a new folder (default: work/multi30k-small)
#   DATA: a folder with the raw files of Multi30k, task 1, as README.md says
#
# Printed by `sbnmt recipe examples/multi30k --small --print`; to change it, change
# recipe.yaml. The same command with `--work WORK --data DATA` instead of --print runs
# these steps itself, goes on after an interrupt, and measures what they cost.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=${1:-work/multi30k-small}
data=${2:?"give WORK and DATA, as said above"}
PATH=${VENV:-.venv}/bin:$PATH # where scripts/setup.sh installs
export GLIBC_TUNABLES="${GLIBC_TUNABLES:-glibc.malloc.mmap_max=0:\
glibc.malloc.trim_threshold=8589934592:glibc.malloc.top_pad=268435456}"

# what all trainings share
train=(
  --user-dir sbnmt_plugin --task sb_translation
  --criterion sb_label_smoothed_cross_entropy --log-format simple --seed 1
  --share-all-embeddings --dropout 0.1 --optimizer adam --adam-betas '(0.9, 0.98)'
  --clip-norm 0 --lr-scheduler polynomial_decay --label-smoothing 0.1
  --keep-last-epochs 1 --eval-bleu
  --eval-bleu-args '{"beam": 2, "max_len_a": 1.2, "max_len_b": 10}'
  --eval-bleu-remove-bpe --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
  --num-workers 0 --cpu --encoder-embed-dim 128 --encoder-ffn-embed-dim 256
  --encoder-layers 2 --encoder-attention-heads 4 --decoder-embed-dim 128
  --decoder-ffn-embed-dim 256 --decoder-layers 2 --decoder-attention-heads 4
  --distributed-world-size 1
)

# and those of transformer
transformer=(
  "${train[@]}" --arch transformer --lr 0.003 --warmup-updates 400
  --total-num-update 5748 --max-tokens 3000 --max-update 5748
)

# and those of sb_transformer
sb_transformer=(
  "${train[@]}" --arch sb_transformer --sb-fusion tanh --max-tokens 6000 --sb-probe 500
)

# what all searches share
search=(--cpu --beam 4 --lenpen 0.6 --max-len-a 1.2 --max-len-b 10)

# how every row is scored
score=(--text "$work/text" --target de --detokenise de)

# A new folder: nothing of another run shall be taken for this one's
mkdir -p "$(dirname "$work")"
mkdir "$work" "$work/results"

# Tokenise the raw text
sbnmt prepare examples/multi30k --output "$work/text" --lowercase --data "$data"

# Learn byte-pair merges of en and de
sbnmt bpe learn --merges 4000 \
  --codes "$work/bpe/codes" "$work/text/train.en" "$work/text/train.de"

# Split the words of en by them
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/train.en" "$work/bpe/train.en"
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/valid.en" "$work/bpe/valid.en"
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/test.en" "$work/bpe/test.en"

# Split the words of de by them
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/train.de" "$work/bpe/train.de"
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/valid.de" "$work/bpe/valid.de"
sbnmt bpe apply --codes "$work/bpe/codes" "$work/text/test.de" "$work/bpe/test.de"

# Binarise the gold text; its dictionaries are everyone's
sbnmt binarise -s en -t de --destdir "$work/data" --trainpref "$work/bpe/train" \
  --validpref "$work/bpe/valid" --testpref "$work/bpe/test" --workers 2 \
  --joined-dictionary

# Train teacher-l2r: Transformer, L2R
fairseq-train "$work/data" "${transformer[@]}" --save-dir "$work/teacher-l2r" \
  --sb-direction l2r

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/teacher-l2r/model.pt"

# Pseudo targets: the L2R teacher's translations
sbnmt translate "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --sb-direction l2r --max-tokens 16000 --input "$work/bpe/train.en" \
  --output "$work/pseudo/l2r.tsv"

# Train teacher-r2l: Transformer, R2L
fairseq-train "$work/data" "${transformer[@]}" --save-dir "$work/teacher-r2l" \
  --sb-direction r2l

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/teacher-r2l/model.pt"

# Pseudo targets: the R2L teacher's translations
sbnmt translate "$work/data" "${search[@]}" --path "$work/teacher-r2l/model.pt" \
  --sb-direction r2l --max-tokens 16000 --input "$work/bpe/train.en" \
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
  --input "$work/bpe/test.en" --output "$work/results/rerank.tsv"

# Score rerank
sbnmt evaluate "$work/results/rerank.tsv" "${score[@]}" \
  --output "$work/results/rerank.json"

# Join gold text and pseudo targets: y_g and y_pl, a pair each
sbnmt triples --source "$work/bpe/train.en" --target "$work/bpe/train.de" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --output "$work/examples/pl/train" --pairs pl

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s en -t de --destdir "$work/data-pl" \
  --trainpref "$work/examples/pl/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.en.txt" \
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
  --sb-lambda 0 --lr 0.003 --warmup-updates 400 --total-num-update 5748 \
  --max-update 5748

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
sbnmt triples --source "$work/bpe/train.en" --target "$work/bpe/train.de" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --pseudo-r2l "$work/pseudo/r2l.tsv" \
  --output "$work/examples/two/train" --triples two

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s en -t de --destdir "$work/data-two" \
  --trainpref "$work/examples/two/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.en.txt" \
  --joined-dictionary

# Train sb-lambda0: SB-NMT, λ = 0, two triples
fairseq-train "$work/data-two" "${sb_transformer[@]}" --save-dir "$work/sb-lambda0" \
  --sb-lambda 0 --lr 0.003 --warmup-updates 400 --total-num-update 5748 \
  --max-update 5748

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

# Train sb: SB-NMT, tanh, λ = 0.1, two triples
fairseq-train "$work/data-two" "${sb_transformer[@]}" --save-dir "$work/sb" \
  --sb-lambda 0.1 --lr 0.003 --warmup-updates 400 --total-num-update 5748 \
  --max-update 5748

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb/model.pt"

# Translate the test set with sb
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb.jsonl" --results-path "$work/results/sb.generate"

# Score sb
sbnmt evaluate "$work/results/sb.generate" "${score[@]}" \
  --records "$work/results/sb.jsonl" --output "$work/results/sb.json"

# Train sb-staged: SB-NMT, λ = 1, gold in both streams, then two triples; stage 1, gold
fairseq-train "$work/data" "${sb_transformer[@]}" --save-dir "$work/sb-staged/stage-1" \
  --sb-lambda 1 --lr 0.003 --warmup-updates 400 --total-num-update 2500 \
  --max-update 1000 --sb-future-dropout 0

# Train sb-staged: SB-NMT, λ = 1, gold in both streams, then two triples
fairseq-train "$work/data-two" "${sb_transformer[@]}" --save-dir "$work/sb-staged" \
  --finetune-from-model "$work/sb-staged/stage-1/checkpoint_last.pt" --sb-lambda 1 \
  --lr 0.002 --warmup-updates 400 --total-num-update 4748 --max-update 4748 \
  --sb-future-dropout 0

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb-staged/model.pt"

# Translate the test set with sb-staged
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-staged/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-staged.jsonl" \
  --results-path "$work/results/sb-staged.generate"

# Score sb-staged
sbnmt evaluate "$work/results/sb-staged.generate" "${score[@]}" \
  --records "$work/results/sb-staged.jsonl" --output "$work/results/sb-staged.json"

# Join gold text and pseudo targets: two triples a sentence, and gold text twice
sbnmt triples --source "$work/bpe/train.en" --target "$work/bpe/train.de" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --pseudo-r2l "$work/pseudo/r2l.tsv" \
  --output "$work/examples/three/train" --triples three

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s en -t de --destdir "$work/data-three" \
  --trainpref "$work/examples/three/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.en.txt" \
  --joined-dictionary

# Train sb-noise-lambda0: SB-NMT, λ = 0, three triples, noise
fairseq-train "$work/data-three" "${sb_transformer[@]}" \
  --save-dir "$work/sb-noise-lambda0" --sb-lambda 0 --lr 0.003 --warmup-updates 400 \
  --total-num-update 5748 --max-update 5748 --sb-partner-noise 0.5

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

# Train sb-reader: SB-NMT, λ = 1, a reader beside λ = 0, three triples, noise, future
# shifted
fairseq-train "$work/data-three" "${sb_transformer[@]}" --save-dir "$work/sb-reader" \
  --finetune-from-model "$work/sb-noise-lambda0/model.pt" --sb-lambda 1 --lr 0.003 \
  --warmup-updates 100 --total-num-update 1000 --max-update 1000 --sb-future-dropout 0 \
  --sb-partner-noise 0.5 --sb-future-shift --sb-reader --sb-freeze-writer

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb-reader/model.pt"

# Translate the test set with sb-reader
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-reader/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-reader.jsonl" \
  --results-path "$work/results/sb-reader.generate"

# Score sb-reader
sbnmt evaluate "$work/results/sb-reader.generate" "${score[@]}" \
  --records "$work/results/sb-reader.jsonl" --output "$work/results/sb-reader.json"

# Train sb-reader-two: SB-NMT, λ = 1, a reader beside λ = 0, two triples, future shifted
fairseq-train "$work/data-two" "${sb_transformer[@]}" --save-dir "$work/sb-reader-two" \
  --finetune-from-model "$work/sb-lambda0/model.pt" --sb-lambda 1 --lr 0.003 \
  --warmup-updates 100 --total-num-update 1000 --max-update 1000 --sb-future-dropout 0 \
  --sb-future-shift --sb-reader --sb-freeze-writer

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb-reader-two/model.pt"

# Translate the test set with sb-reader-two
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-reader-two/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-reader-two.jsonl" \
  --results-path "$work/results/sb-reader-two.generate"

# Score sb-reader-two
sbnmt evaluate "$work/results/sb-reader-two.generate" "${score[@]}" \
  --records "$work/results/sb-reader-two.jsonl" \
  --output "$work/results/sb-reader-two.json"

# Train sb-reader-own: SB-NMT, λ = 1, a reader beside λ = 0, gold, own words, future
# shifted
fairseq-train "$work/data" "${sb_transformer[@]}" --save-dir "$work/sb-reader-own" \
  --finetune-from-model "$work/teacher-both/model.pt" --sb-lambda 1 --lr 0.003 \
  --warmup-updates 100 --total-num-update 1000 --max-update 1000 --sb-future-dropout 0 \
  --sb-partner own --sb-future-shift --sb-reader --sb-freeze-writer

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb-reader-own/model.pt"

# Translate the test set with sb-reader-own
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-reader-own/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-reader-own.jsonl" \
  --results-path "$work/results/sb-reader-own.generate"

# Score sb-reader-own
sbnmt evaluate "$work/results/sb-reader-own.generate" "${score[@]}" \
  --records "$work/results/sb-reader-own.jsonl" \
  --output "$work/results/sb-reader-own.json"

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

# Translate the test set with sb+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb/model.pt" \
  --gen-subset test --max-tokens 4000 --sb-rescore 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/sb+rescored.jsonl" \
  --results-path "$work/results/sb+rescored.generate"

# Score sb+rescored
sbnmt evaluate "$work/results/sb+rescored.generate" "${score[@]}" \
  --records "$work/results/sb+rescored.jsonl" \
  --output "$work/results/sb+rescored.json"

# Translate the test set with sb-staged+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-staged/model.pt" \
  --gen-subset test --max-tokens 4000 --sb-rescore 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/sb-staged+rescored.jsonl" \
  --results-path "$work/results/sb-staged+rescored.generate"

# Score sb-staged+rescored
sbnmt evaluate "$work/results/sb-staged+rescored.generate" "${score[@]}" \
  --records "$work/results/sb-staged+rescored.jsonl" \
  --output "$work/results/sb-staged+rescored.json"

# Translate the test set with sb-noise-lambda0+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-noise-lambda0/model.pt" \
  --gen-subset test --max-tokens 4000 --sb-rescore 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/sb-noise-lambda0+rescored.jsonl" \
  --results-path "$work/results/sb-noise-lambda0+rescored.generate"

# Score sb-noise-lambda0+rescored
sbnmt evaluate "$work/results/sb-noise-lambda0+rescored.generate" "${score[@]}" \
  --records "$work/results/sb-noise-lambda0+rescored.jsonl" \
  --output "$work/results/sb-noise-lambda0+rescored.json"

# Translate the test set with sb-reader+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-reader/model.pt" \
  --gen-subset test --max-tokens 4000 --sb-rescore 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/sb-reader+rescored.jsonl" \
  --results-path "$work/results/sb-reader+rescored.generate"

# Score sb-reader+rescored
sbnmt evaluate "$work/results/sb-reader+rescored.generate" "${score[@]}" \
  --records "$work/results/sb-reader+rescored.jsonl" \
  --output "$work/results/sb-reader+rescored.json"

# Translate the test set with sb-reader-two+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-reader-two/model.pt" \
  --gen-subset test --max-tokens 4000 --sb-rescore 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/sb-reader-two+rescored.jsonl" \
  --results-path "$work/results/sb-reader-two+rescored.generate"

# Score sb-reader-two+rescored
sbnmt evaluate "$work/results/sb-reader-two+rescored.generate" "${score[@]}" \
  --records "$work/results/sb-reader-two+rescored.jsonl" \
  --output "$work/results/sb-reader-two+rescored.json"

# Translate the test set with sb-reader-own+rescored
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-reader-own/model.pt" \
  --gen-subset test --max-tokens 4000 --sb-rescore 1 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/sb-reader-own+rescored.jsonl" \
  --results-path "$work/results/sb-reader-own+rescored.generate"

# Score sb-reader-own+rescored
sbnmt evaluate "$work/results/sb-reader-own+rescored.generate" "${score[@]}" \
  --records "$work/results/sb-reader-own+rescored.jsonl" \
  --output "$work/results/sb-reader-own+rescored.json"

# What the interaction is worth to sb in the search
sbnmt probe-interaction "$work/data" "${search[@]}" --path "$work/sb/model.pt" \
  --input "$work/bpe/test.en" --reference "$work/text/test.de" --max-tokens 4000 \
  --json "$work/results/interaction/sb.json"

# How much the streams of sb read of each other
sbnmt probe-reading "$work/data" --path "$work/sb/model.pt" --max-tokens 4000 --cpu \
  --json "$work/results/reading/sb.json"

# What the interaction is worth to sb-staged in the search
sbnmt probe-interaction "$work/data" "${search[@]}" --path "$work/sb-staged/model.pt" \
  --input "$work/bpe/test.en" --reference "$work/text/test.de" --max-tokens 4000 \
  --json "$work/results/interaction/sb-staged.json"

# How much the streams of sb-staged read of each other
sbnmt probe-reading "$work/data" --path "$work/sb-staged/model.pt" --max-tokens 4000 \
  --cpu --json "$work/results/reading/sb-staged.json"

# What the interaction is worth to sb-reader in the search
sbnmt probe-interaction "$work/data" "${search[@]}" --path "$work/sb-reader/model.pt" \
  --input "$work/bpe/test.en" --reference "$work/text/test.de" --max-tokens 4000 \
  --json "$work/results/interaction/sb-reader.json"

# How much the streams of sb-reader read of each other
sbnmt probe-reading "$work/data" --path "$work/sb-reader/model.pt" --max-tokens 4000 \
  --cpu --json "$work/results/reading/sb-reader.json"

# What the interaction is worth to sb-reader-two in the search
sbnmt probe-interaction "$work/data" "${search[@]}" \
  --path "$work/sb-reader-two/model.pt" --input "$work/bpe/test.en" \
  --reference "$work/text/test.de" --max-tokens 4000 \
  --json "$work/results/interaction/sb-reader-two.json"

# How much the streams of sb-reader-two read of each other
sbnmt probe-reading "$work/data" --path "$work/sb-reader-two/model.pt" \
  --max-tokens 4000 --cpu --json "$work/results/reading/sb-reader-two.json"

# What the interaction is worth to sb-reader-own in the search
sbnmt probe-interaction "$work/data" "${search[@]}" \
  --path "$work/sb-reader-own/model.pt" --input "$work/bpe/test.en" \
  --reference "$work/text/test.de" --max-tokens 4000 \
  --json "$work/results/interaction/sb-reader-own.json"

# How much the streams of sb-reader-own read of each other
sbnmt probe-reading "$work/data" --path "$work/sb-reader-own/model.pt" \
  --max-tokens 4000 --cpu --json "$work/results/reading/sb-reader-own.json"

# The table
sbnmt table --recipe examples/multi30k --small --work "$work"
