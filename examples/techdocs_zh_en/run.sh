#!/usr/bin/env bash
# Make the results table of techdocs_zh_en from raw text, step by step.
# Its rows: teacher-l2r, teacher-r2l, rerank, transformer-pl, sb-lambda0,
# sb-lambda0+rescored, sb, sb+rescored, sb-staged, sb-staged+rescored, sb-noise-lambda0,
# sb-noise-lambda0+rescored, sb-noise-shift-dropped, sb-noise-shift-dropped+rescored.
#
# usage: examples/techdocs_zh_en/run.sh WORK DATA
#   WORK: a new folder (default: work/techdocs_zh_en)
#   DATA: a folder with train, valid and test .zh and .en, as README.md says
#
# Printed by `sbnmt recipe examples/techdocs_zh_en --print`; to change it, change
# recipe.yaml. The same command with `--work WORK --data DATA` instead of --print runs
# these steps itself, goes on after an interrupt, and measures what they cost.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=${1:-work/techdocs_zh_en}
data=${2:?"give WORK and DATA, as said above"}
PATH=${VENV:-.venv}/bin:$PATH # where scripts/setup.sh installs

# what all trainings share; one process trains (several: `sbnmt train --help`)
train=(
  --user-dir sbnmt_plugin --task sb_translation
  --criterion sb_label_smoothed_cross_entropy --log-format simple --seed 1
  --share-all-embeddings --dropout 0.3 --weight-decay 0.0001 --optimizer adam
  --adam-betas '(0.9, 0.98)' --clip-norm 0 --lr 0.0005 --lr-scheduler inverse_sqrt
  --label-smoothing 0.1 --update-freq 1 --keep-last-epochs 5 --eval-bleu
  --eval-bleu-args '{"beam": 4, "lenpen": 0.6, "max_len_a": 1.2, "max_len_b": 10}'
  --eval-bleu-remove-bpe --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
  --fp16 --distributed-world-size 1
)

# and those of transformer_iwslt_de_en
transformer_iwslt_de_en=(
  "${train[@]}" --arch transformer_iwslt_de_en --warmup-updates 2000 --max-tokens 16384
  --max-update 8000
)

# and those of sb_transformer_iwslt_de_en
sb_transformer_iwslt_de_en=(
  "${train[@]}" --arch sb_transformer_iwslt_de_en --sb-fusion tanh --max-tokens 32768
  --sb-probe 500
)

# what all searches share
search=(--fp16 --beam 4 --lenpen 0.6 --max-len-a 1.2 --max-len-b 10)

# how every row is scored
score=(--text "$work/text" --target en --detokenise en)

# A new folder: nothing of another run shall be taken for this one's
mkdir -p "$(dirname "$work")"
mkdir "$work" "$work/results"

# Tokenise the raw text
sbnmt prepare examples/techdocs_zh_en --output "$work/text" --data "$data"

# Learn byte-pair merges of zh and en
sbnmt bpe learn --merges 16000 \
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
fairseq-train "$work/data" "${transformer_iwslt_de_en[@]}" \
  --save-dir "$work/teacher-l2r" --sb-direction l2r

# The average of its last 5 checkpoints is the model
sbnmt average --output "$work/teacher-l2r/model.pt" --last 5 \
  --or-fewer "$work/teacher-l2r"

# Pseudo targets: the L2R teacher's translations
sbnmt translate "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --sb-direction l2r --max-tokens 16000 --input "$work/bpe/train.zh" \
  --output "$work/pseudo/l2r.tsv"

# Train teacher-r2l: Transformer, R2L
fairseq-train "$work/data" "${transformer_iwslt_de_en[@]}" \
  --save-dir "$work/teacher-r2l" --sb-direction r2l

# The average of its last 5 checkpoints is the model
sbnmt average --output "$work/teacher-r2l/model.pt" --last 5 \
  --or-fewer "$work/teacher-r2l"

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
fairseq-train "$work/data-pl" "${transformer_iwslt_de_en[@]}" \
  --save-dir "$work/transformer-pl" --sb-direction l2r

# The average of its last 5 checkpoints is the model
sbnmt average --output "$work/transformer-pl/model.pt" --last 5 \
  --or-fewer "$work/transformer-pl"

# Translate the test set with transformer-pl
fairseq-generate "$work/data" "${search[@]}" --path "$work/transformer-pl/model.pt" \
  --sb-direction l2r --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/transformer-pl.jsonl" \
  --results-path "$work/results/transformer-pl.generate"

# Score transformer-pl
sbnmt evaluate "$work/results/transformer-pl.generate" "${score[@]}" \
  --output "$work/results/transformer-pl.json"

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
fairseq-train "$work/data-two" "${sb_transformer_iwslt_de_en[@]}" \
  --save-dir "$work/sb-lambda0" --sb-lambda 0 --warmup-updates 2000 --max-update 8000

# The average of its last 5 checkpoints is the model
sbnmt average --output "$work/sb-lambda0/model.pt" --last 5 \
  --or-fewer "$work/sb-lambda0"

# Translate the test set with sb-lambda0
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-lambda0/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-lambda0.jsonl" \
  --results-path "$work/results/sb-lambda0.generate"

# Score sb-lambda0
sbnmt evaluate "$work/results/sb-lambda0.generate" "${score[@]}" \
  --records "$work/results/sb-lambda0.jsonl" --output "$work/results/sb-lambda0.json"

# Train sb: SB-NMT, tanh, λ = 0.1, two triples
fairseq-train "$work/data-two" "${sb_transformer_iwslt_de_en[@]}" \
  --save-dir "$work/sb" --sb-lambda 0.1 --warmup-updates 2000 --max-update 8000

# The average of its last 5 checkpoints is the model
sbnmt average --output "$work/sb/model.pt" --last 5 --or-fewer "$work/sb"

# Translate the test set with sb
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb.jsonl" --results-path "$work/results/sb.generate"

# Score sb
sbnmt evaluate "$work/results/sb.generate" "${score[@]}" \
  --records "$work/results/sb.jsonl" --output "$work/results/sb.json"

# Train sb-staged: SB-NMT, λ = 1, gold in both streams, then two triples; stage 1, gold
fairseq-train "$work/data" "${sb_transformer_iwslt_de_en[@]}" \
  --save-dir "$work/sb-staged/stage-1" --sb-lambda 1 --warmup-updates 1000 \
  --max-update 2000 --sb-future-dropout 0

# Train sb-staged: SB-NMT, λ = 1, gold in both streams, then two triples
fairseq-train "$work/data-two" "${sb_transformer_iwslt_de_en[@]}" \
  --save-dir "$work/sb-staged" \
  --finetune-from-model "$work/sb-staged/stage-1/checkpoint_last.pt" --sb-lambda 1 \
  --warmup-updates 500 --max-update 6000 --sb-future-dropout 0

# The average of its last 5 checkpoints is the model
sbnmt average --output "$work/sb-staged/model.pt" --last 5 \
  --or-fewer "$work/sb-staged"

# Translate the test set with sb-staged
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-staged/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-staged.jsonl" \
  --results-path "$work/results/sb-staged.generate"

# Score sb-staged
sbnmt evaluate "$work/results/sb-staged.generate" "${score[@]}" \
  --records "$work/results/sb-staged.jsonl" --output "$work/results/sb-staged.json"

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
fairseq-train "$work/data-three" "${sb_transformer_iwslt_de_en[@]}" \
  --save-dir "$work/sb-noise-lambda0" --sb-lambda 0 --warmup-updates 2000 \
  --max-update 8000 --sb-partner-noise 0.5

# The average of its last 5 checkpoints is the model
sbnmt average --output "$work/sb-noise-lambda0/model.pt" --last 5 \
  --or-fewer "$work/sb-noise-lambda0"

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
fairseq-train "$work/data-three" "${sb_transformer_iwslt_de_en[@]}" \
  --save-dir "$work/sb-noise-shift-dropped" --sb-lambda 1 --warmup-updates 2000 \
  --max-update 8000 --sb-future-dropout 0 --sb-partner-noise 0.5 --sb-future-shift \
  --sb-partner-dropout 0.5

# The average of its last 5 checkpoints is the model
sbnmt average --output "$work/sb-noise-shift-dropped/model.pt" --last 5 \
  --or-fewer "$work/sb-noise-shift-dropped"

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

# What the interaction is worth to sb in the search
sbnmt probe-interaction "$work/data" "${search[@]}" --path "$work/sb/model.pt" \
  --input "$work/bpe/test.zh" --reference "$work/text/test.en" --max-tokens 4000 \
  --json "$work/results/interaction/sb.json"

# How much the streams of sb read of each other
sbnmt probe-reading "$work/data" --path "$work/sb/model.pt" --max-tokens 4000 \
  --json "$work/results/reading/sb.json"

# What the interaction is worth to sb-staged in the search
sbnmt probe-interaction "$work/data" "${search[@]}" --path "$work/sb-staged/model.pt" \
  --input "$work/bpe/test.zh" --reference "$work/text/test.en" --max-tokens 4000 \
  --json "$work/results/interaction/sb-staged.json"

# How much the streams of sb-staged read of each other
sbnmt probe-reading "$work/data" --path "$work/sb-staged/model.pt" --max-tokens 4000 \
  --json "$work/results/reading/sb-staged.json"

# What the interaction is worth to sb-noise-shift-dropped in the search
sbnmt probe-interaction "$work/data" "${search[@]}" \
  --path "$work/sb-noise-shift-dropped/model.pt" --input "$work/bpe/test.zh" \
  --reference "$work/text/test.en" --max-tokens 4000 \
  --json "$work/results/interaction/sb-noise-shift-dropped.json"

# How much the streams of sb-noise-shift-dropped read of each other
sbnmt probe-reading "$work/data" --path "$work/sb-noise-shift-dropped/model.pt" \
  --max-tokens 4000 --json "$work/results/reading/sb-noise-shift-dropped.json"

# The table
sbnmt table --recipe examples/techdocs_zh_en --work "$work"
