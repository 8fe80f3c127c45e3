#!/usr/bin/env bash
# Make the results table of g2p_cmudict from raw text, step by step.
# Its rows: teacher-l2r, teacher-r2l, rerank, teacher-both, transformer-pl,
# transformer-pr, sb-lambda0, sb-lambda0+rescored, sb, sb+rescored.
#
# usage: examples/g2p_cmudict/run.sh [WORK]
#   WORK: a new folder (default: work/g2p_cmudict)
#
# Printed by `sbnmt recipe examples/g2p_cmudict --print`; to change it, change
# recipe.yaml. The same command with `--work WORK` instead of --print runs these steps
# itself, goes on after an interrupt, and measures what they cost.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=${1:-work/g2p_cmudict}
PATH=${VENV:-.venv}/bin:$PATH # where scripts/setup.sh installs
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

# what all trainings share
train=(
  --user-dir sbnmt_plugin --task sb_translation
  --criterion sb_label_smoothed_cross_entropy --log-format simple --seed 1
  --share-decoder-input-output-embed --dropout 0.1 --optimizer adam
  --adam-betas '(0.9, 0.98)' --clip-norm 0 --lr 0.002 --lr-scheduler polynomial_decay
  --warmup-updates 1000 --label-smoothing 0.1 --max-update 15510
  --total-num-update 15510 --keep-last-epochs 1 --eval-bleu
  --eval-bleu-args '{"beam": 2, "max_len_a": 2, "max_len_b": 10}'
  --best-checkpoint-metric bleu --maximize-best-checkpoint-metric --num-workers 0 --cpu
  --encoder-embed-dim 128 --encoder-ffn-embed-dim 512 --encoder-layers 2
  --encoder-attention-heads 4 --decoder-embed-dim 128 --decoder-ffn-embed-dim 512
  --decoder-layers 2 --decoder-attention-heads 4 --encoder-normalize-before
  --decoder-normalize-before --distributed-world-size 1
)

# and those of transformer
transformer=("${train[@]}" --arch transformer --max-tokens 700)

# and those of sb_transformer
sb_transformer=(
  "${train[@]}" --arch sb_transformer --sb-fusion tanh --max-tokens 1400
  --sb-future-dropout 0 --sb-probe 500
)

# what all searches share
search=(--cpu --beam 4 --lenpen 0.6 --max-len-a 2 --max-len-b 10)

# how every row is scored
score=(--text "$work/text" --target phonemes --references 4 --phonemes)

# A new folder: nothing of another run shall be taken for this one's
mkdir -p "$(dirname "$work")"
mkdir "$work" "$work/results"

# Write the text
sbnmt prepare examples/g2p_cmudict --output "$work/text"

# Binarise the gold text; its dictionaries are everyone's
sbnmt binarise -s letters -t phonemes --destdir "$work/data" \
  --trainpref "$work/text/train" --validpref "$work/text/valid" \
  --testpref "$work/text/test" --workers 2

# Train teacher-l2r: Transformer, L2R
fairseq-train "$work/data" "${transformer[@]}" --save-dir "$work/teacher-l2r" \
  --sb-direction l2r

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/teacher-l2r/model.pt"

# Pseudo targets: the L2R teacher's translations
sbnmt translate "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --sb-direction l2r --max-tokens 16000 --input "$work/text/train.letters" \
  --output "$work/pseudo/l2r.tsv"

# Train teacher-r2l: Transformer, R2L
fairseq-train "$work/data" "${transformer[@]}" --save-dir "$work/teacher-r2l" \
  --sb-direction r2l

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/teacher-r2l/model.pt"

# Pseudo targets: the R2L teacher's translations
sbnmt translate "$work/data" "${search[@]}" --path "$work/teacher-r2l/model.pt" \
  --sb-direction r2l --max-tokens 16000 --input "$work/text/train.letters" \
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
  --input "$work/text/test.letters" --output "$work/results/rerank.tsv"

# Score rerank
sbnmt evaluate "$work/results/rerank.tsv" "${score[@]}" \
  --output "$work/results/rerank.json"

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

# Join gold text and pseudo targets: y_g and y_pl, a pair each
sbnmt triples --source "$work/text/train.letters" --target "$work/text/train.phonemes" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --output "$work/examples/pl/train" --pairs pl

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s letters -t phonemes --destdir "$work/data-pl" \
  --trainpref "$work/examples/pl/train" --validpref "$work/text/valid" \
  --testpref "$work/text/test" --workers 2 --srcdict "$work/data/dict.letters.txt" \
  --tgtdict "$work/data/dict.phonemes.txt"

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

# Join gold text and pseudo targets: y_g and y_pr, a pair each
sbnmt triples --source "$work/text/train.letters" --target "$work/text/train.phonemes" \
  --pseudo-r2l "$work/pseudo/r2l.tsv" --output "$work/examples/pr/train" --pairs pr

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s letters -t phonemes --destdir "$work/data-pr" \
  --trainpref "$work/examples/pr/train" --validpref "$work/text/valid" \
  --testpref "$work/text/test" --workers 2 --srcdict "$work/data/dict.letters.txt" \
  --tgtdict "$work/data/dict.phonemes.txt"

# Train transformer-pr: Transformer, R2L, y_g + y_pr
fairseq-train "$work/data-pr" "${transformer[@]}" --save-dir "$work/transformer-pr" \
  --sb-direction r2l

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/transformer-pr/model.pt"

# Translate the test set with transformer-pr
fairseq-generate "$work/data" "${search[@]}" --path "$work/transformer-pr/model.pt" \
  --sb-direction r2l --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/transformer-pr.jsonl" \
  --results-path "$work/results/transformer-pr.generate"

# Score transformer-pr
sbnmt evaluate "$work/results/transformer-pr.generate" "${score[@]}" \
  --output "$work/results/transformer-pr.json"

# Join gold text and pseudo targets: two triples a sentence
sbnmt triples --source "$work/text/train.letters" --target "$work/text/train.phonemes" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --pseudo-r2l "$work/pseudo/r2l.tsv" \
  --output "$work/examples/two/train" --triples two

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s letters -t phonemes --destdir "$work/data-two" \
  --trainpref "$work/examples/two/train" --validpref "$work/text/valid" \
  --testpref "$work/text/test" --workers 2 --srcdict "$work/data/dict.letters.txt" \
  --tgtdict "$work/data/dict.phonemes.txt"

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

# Train sb: SB-NMT, tanh, λ = 1.0, two triples
fairseq-train "$work/data-two" "${sb_transformer[@]}" --save-dir "$work/sb" \
  --sb-lambda 1.0

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb/model.pt"

# Translate the test set with sb
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb.jsonl" --results-path "$work/results/sb.generate"

# Score sb
sbnmt evaluate "$work/results/sb.generate" "${score[@]}" \
  --records "$work/results/sb.jsonl" --output "$work/results/sb.json"

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

# What the interaction is worth to sb in the search
sbnmt probe-interaction "$work/data" "${search[@]}" --path "$work/sb/model.pt" \
  --input "$work/text/test.letters" --reference "$work/text/test.phonemes" \
  --reference "$work/text/test.phonemes.2" --reference "$work/text/test.phonemes.3" \
  --reference "$work/text/test.phonemes.4" --max-tokens 4000 \
  --json "$work/results/interaction/sb.json" --phonemes

# How much the streams of sb read of each other
sbnmt probe-reading "$work/data" --path "$work/sb/model.pt" --max-tokens 4000 --cpu \
  --json "$work/results/reading/sb.json"

# The table
sbnmt table --recipe examples/g2p_cmudict --work "$work"
