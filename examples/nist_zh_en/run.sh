#!/usr/bin/env bash
# Make the results table of nist_zh_en from raw text, step by step.
# Its rows: teacher-l2r, teacher-r2l, transformer-pl, transformer-pl-pr, rnmt, rerank,
# abd, abd-two, sb-lambda0, sb, sb-six, sb-finetuned.
#
# usage: examples/nist_zh_en/run.sh WORK DATA
#   WORK: a new folder (default: work/nist_zh_en)
#   DATA: a folder with train and test texts of LDC and NIST, as README.md says
#
# Printed by `sbnmt recipe examples/nist_zh_en --print`; to change it, change
# recipe.yaml. The same command with `--work WORK --data DATA` instead of --print runs
# these steps itself, goes on after an interrupt, and measures what they cost.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -d examples/nist_zh_en ] ||
  { echo "save this script in examples/nist_zh_en, where it runs" >&2; exit 2; }

work=${1:-work/nist_zh_en}
data=${2:?"give WORK and DATA, as said above"}
[ -d "$data" ] || { echo "$data must be the folder DATA" >&2; exit 2; }
PATH=${VENV:-.venv}/bin:$PATH # where scripts/setup.sh installs

# what all trainings of transformer_wmt_en_de_big share
transformer_wmt_en_de_big=(
  --user-dir sbnmt_plugin --task sb_translation
  --criterion sb_label_smoothed_cross_entropy --arch transformer_wmt_en_de_big
  --log-format simple --seed 1 --share-all-embeddings --dropout 0.1
  --attention-dropout 0 --optimizer adam --adam-betas '(0.9, 0.998)' --adam-eps 1e-9
  --lr 0.000247 --lr-scheduler inverse_sqrt --warmup-updates 16000 --label-smoothing 0.1
  --clip-norm 0 --max-tokens 512 --update-freq 4 --max-source-positions 512
  --max-target-positions 512 --max-tokens-valid 4096 --max-update 200000
  --save-interval-updates 1000 --keep-interval-updates 1 --no-epoch-checkpoints
  --eval-bleu
  --eval-bleu-args '{"beam": 4, "lenpen": 0.6, "max_len_a": 1, "max_len_b": 50}'
  --eval-bleu-remove-bpe --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
  --fp16 --distributed-world-size 1
)

# what all searches share
search=(
  --fp16 --beam 4 --lenpen 0.6 --sb-length-penalty gnmt --max-len-a 1 --max-len-b 50
)

# how every row is scored
score=(--text "$work/text" --target en --references 4 --lowercase --detokenise en)

# what all trainings of abd_transformer_wmt_en_de_big share
abd_transformer_wmt_en_de_big=(
  --user-dir sbnmt_plugin --task sb_translation
  --criterion sb_label_smoothed_cross_entropy --arch abd_transformer_wmt_en_de_big
  --log-format simple --seed 1 --share-all-embeddings --dropout 0.1
  --attention-dropout 0 --optimizer adam --adam-betas '(0.9, 0.998)' --adam-eps 1e-9
  --lr 0.000247 --lr-scheduler inverse_sqrt --warmup-updates 16000 --label-smoothing 0.1
  --clip-norm 0 --max-tokens 1024 --update-freq 4 --max-source-positions 512
  --max-target-positions 512 --max-tokens-valid 4096 --max-update 200000
  --save-interval-updates 1000 --keep-interval-updates 1 --no-epoch-checkpoints
  --eval-bleu
  --eval-bleu-args '{"beam": 4, "lenpen": 0.6, "max_len_a": 1, "max_len_b": 50}'
  --eval-bleu-remove-bpe --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
  --fp16 --distributed-world-size 1
)

# what all trainings of sb_transformer_wmt_en_de_big share
sb_transformer_wmt_en_de_big=(
  --user-dir sbnmt_plugin --task sb_translation
  --criterion sb_label_smoothed_cross_entropy --arch sb_transformer_wmt_en_de_big
  --log-format simple --seed 1 --sb-fusion tanh --share-all-embeddings --dropout 0.1
  --attention-dropout 0 --optimizer adam --adam-betas '(0.9, 0.998)' --adam-eps 1e-9
  --lr 0.000247 --lr-scheduler inverse_sqrt --label-smoothing 0.1 --clip-norm 0
  --max-tokens 1024 --update-freq 4 --max-source-positions 512
  --max-target-positions 512 --max-tokens-valid 4096 --save-interval-updates 1000
  --keep-interval-updates 1 --no-epoch-checkpoints --eval-bleu
  --eval-bleu-args '{"beam": 4, "lenpen": 0.6, "max_len_a": 1, "max_len_b": 50}'
  --eval-bleu-remove-bpe --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
  --fp16 --distributed-world-size 1
)

# A new folder: nothing of another run shall be taken for this one's
mkdir -p "$(dirname "$work")"
mkdir "$work" "$work/results"

# Tokenise the raw text
sbnmt prepare examples/nist_zh_en --output "$work/text" --lowercase --data "$data"

# Learn byte-pair merges of zh
sbnmt bpe learn --merges 30000 --codes "$work/bpe/codes.zh" "$work/text/train.zh"

# Split the words of zh by them
sbnmt bpe apply \
  --codes "$work/bpe/codes.zh" "$work/text/train.zh" "$work/bpe/train.zh"
sbnmt bpe apply \
  --codes "$work/bpe/codes.zh" "$work/text/valid.zh" "$work/bpe/valid.zh"
sbnmt bpe apply --codes "$work/bpe/codes.zh" "$work/text/test.zh" "$work/bpe/test.zh"

# Learn byte-pair merges of en
sbnmt bpe learn --merges 30000 --codes "$work/bpe/codes.en" "$work/text/train.en"

# Split the words of en by them
sbnmt bpe apply \
  --codes "$work/bpe/codes.en" "$work/text/train.en" "$work/bpe/train.en"
sbnmt bpe apply \
  --codes "$work/bpe/codes.en" "$work/text/valid.en" "$work/bpe/valid.en"
sbnmt bpe apply --codes "$work/bpe/codes.en" "$work/text/test.en" "$work/bpe/test.en"

# Binarise the gold text; its dictionaries are everyone's
sbnmt binarise -s zh -t en --destdir "$work/data" --trainpref "$work/bpe/train" \
  --validpref "$work/bpe/valid" --testpref "$work/bpe/test" --workers 2 \
  --joined-dictionary --nwordssrc 60000

# Train teacher-l2r: Transformer, L2R
fairseq-train "$work/data" "${transformer_wmt_en_de_big[@]}" \
  --save-dir "$work/teacher-l2r" --sb-direction l2r

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/teacher-l2r/model.pt"

# Pseudo targets: the L2R teacher's translations
sbnmt pseudo "$work/data" "${search[@]}" --path "$work/teacher-l2r/model.pt" \
  --sb-direction l2r --max-tokens 16000 --input "$work/bpe/train.zh" \
  --output "$work/pseudo/l2r.tsv"

# Train teacher-r2l: Transformer, R2L
fairseq-train "$work/data" "${transformer_wmt_en_de_big[@]}" \
  --save-dir "$work/teacher-r2l" --sb-direction r2l

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/teacher-r2l/model.pt"

# Pseudo targets: the R2L teacher's translations
sbnmt pseudo "$work/data" "${search[@]}" --path "$work/teacher-r2l/model.pt" \
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

# Join gold text and pseudo targets: y_g and y_pl, a pair each
sbnmt triples --source "$work/bpe/train.zh" --target "$work/bpe/train.en" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --output "$work/examples/pl/train" --pairs pl

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s zh -t en --destdir "$work/data-pl" \
  --trainpref "$work/examples/pl/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.zh.txt" \
  --joined-dictionary

# Train transformer-pl: Transformer, y_g + y_pl
fairseq-train "$work/data-pl" "${transformer_wmt_en_de_big[@]}" \
  --save-dir "$work/transformer-pl" --sb-direction l2r

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

# Join gold text and pseudo targets: y_g, y_pl and y_pr, a pair each
sbnmt triples --source "$work/bpe/train.zh" --target "$work/bpe/train.en" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --pseudo-r2l "$work/pseudo/r2l.tsv" \
  --output "$work/examples/pl-pr/train" --pairs pl-pr

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s zh -t en --destdir "$work/data-pl-pr" \
  --trainpref "$work/examples/pl-pr/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.zh.txt" \
  --joined-dictionary

# Train transformer-pl-pr: Transformer, y_g + y_pl + y_pr
fairseq-train "$work/data-pl-pr" "${transformer_wmt_en_de_big[@]}" \
  --save-dir "$work/transformer-pl-pr" --sb-direction l2r

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/transformer-pl-pr/model.pt"

# Translate the test set with transformer-pl-pr
fairseq-generate "$work/data" "${search[@]}" --path "$work/transformer-pl-pr/model.pt" \
  --sb-direction l2r --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/transformer-pl-pr.jsonl" \
  --results-path "$work/results/transformer-pl-pr.generate"

# Score transformer-pl-pr
sbnmt evaluate "$work/results/transformer-pl-pr.generate" "${score[@]}" \
  --output "$work/results/transformer-pl-pr.json"

# Train rnmt: RNMT
fairseq-train "$work/data" --user-dir sbnmt_plugin --save-dir "$work/rnmt" \
  --task sb_translation --criterion sb_label_smoothed_cross_entropy \
  --arch lstm_luong_wmt_en_de --log-format simple --seed 1 --sb-direction l2r \
  --dropout 0.1 --optimizer adam --adam-betas '(0.9, 0.998)' --adam-eps 1e-9 \
  --lr 0.000247 --lr-scheduler inverse_sqrt --warmup-updates 16000 \
  --label-smoothing 0.1 --clip-norm 5 --max-tokens 512 --update-freq 4 \
  --max-source-positions 512 --max-target-positions 512 --max-tokens-valid 4096 \
  --max-update 200000 --save-interval-updates 1000 --keep-interval-updates 1 \
  --no-epoch-checkpoints --eval-bleu \
  --eval-bleu-args '{"beam": 4, "lenpen": 0.6, "max_len_a": 1, "max_len_b": 50}' \
  --eval-bleu-remove-bpe --best-checkpoint-metric bleu \
  --maximize-best-checkpoint-metric --fp16 --distributed-world-size 1

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/rnmt/model.pt"

# Translate the test set with rnmt
fairseq-generate "$work/data" "${search[@]}" --path "$work/rnmt/model.pt" \
  --sb-direction l2r --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin \
  --task sb_translation --sb-records "$work/results/rnmt.jsonl" \
  --results-path "$work/results/rnmt.generate"

# Score rnmt
sbnmt evaluate "$work/results/rnmt.generate" "${score[@]}" \
  --output "$work/results/rnmt.json"

# Translate the test set with both teachers together
sbnmt rerank "$work/data" "${search[@]}" --l2r "$work/teacher-l2r/model.pt" \
  --r2l "$work/teacher-r2l/model.pt" --max-tokens 4000 --beam 10 \
  --input "$work/bpe/test.zh" --output "$work/results/rerank.tsv"

# Score rerank
sbnmt evaluate "$work/results/rerank.tsv" "${score[@]}" \
  --output "$work/results/rerank.json"

# Join gold text and pseudo targets: y_g and y_pr, a triple a sentence
sbnmt triples --source "$work/bpe/train.zh" --target "$work/bpe/train.en" \
  --pseudo-r2l "$work/pseudo/r2l.tsv" --output "$work/examples/one/train" \
  --triples one

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s zh -t en --destdir "$work/data-one" \
  --trainpref "$work/examples/one/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.zh.txt" \
  --joined-dictionary

# Train abd: ABD-NMT, one triple
fairseq-train "$work/data-one" "${abd_transformer_wmt_en_de_big[@]}" \
  --save-dir "$work/abd"

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/abd/model.pt"

# Translate the test set with abd
fairseq-generate "$work/data" "${search[@]}" --path "$work/abd/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/abd.jsonl" --results-path "$work/results/abd.generate"

# Score abd
sbnmt evaluate "$work/results/abd.generate" "${score[@]}" \
  --output "$work/results/abd.json"

# Join gold text and pseudo targets: two triples a sentence
sbnmt triples --source "$work/bpe/train.zh" --target "$work/bpe/train.en" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --pseudo-r2l "$work/pseudo/r2l.tsv" \
  --output "$work/examples/two/train" --triples two

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s zh -t en --destdir "$work/data-two" \
  --trainpref "$work/examples/two/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.zh.txt" \
  --joined-dictionary

# Train abd-two: ABD-NMT, two triples
fairseq-train "$work/data-two" "${abd_transformer_wmt_en_de_big[@]}" \
  --save-dir "$work/abd-two"

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/abd-two/model.pt"

# Translate the test set with abd-two
fairseq-generate "$work/data" "${search[@]}" --path "$work/abd-two/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/abd-two.jsonl" \
  --results-path "$work/results/abd-two.generate"

# Score abd-two
sbnmt evaluate "$work/results/abd-two.generate" "${score[@]}" \
  --output "$work/results/abd-two.json"

# Train sb-lambda0: SB-NMT, λ = 0, two triples
fairseq-train "$work/data-two" "${sb_transformer_wmt_en_de_big[@]}" \
  --save-dir "$work/sb-lambda0" --sb-lambda 0 --warmup-updates 16000 \
  --max-update 200000

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
fairseq-train "$work/data-two" "${sb_transformer_wmt_en_de_big[@]}" \
  --save-dir "$work/sb" --sb-lambda 0.1 --warmup-updates 16000 --max-update 200000

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb/model.pt"

# Translate the test set with sb
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb.jsonl" --results-path "$work/results/sb.generate"

# Score sb
sbnmt evaluate "$work/results/sb.generate" "${score[@]}" \
  --records "$work/results/sb.jsonl" --output "$work/results/sb.json"

# Join gold text and pseudo targets: six triples a sentence
sbnmt triples --source "$work/bpe/train.zh" --target "$work/bpe/train.en" \
  --pseudo-l2r "$work/pseudo/l2r.tsv" --pseudo-r2l "$work/pseudo/r2l.tsv" \
  --output "$work/examples/six/train" --triples six

# Binarise them, with the gold text's dictionaries
sbnmt binarise -s zh -t en --destdir "$work/data-six" \
  --trainpref "$work/examples/six/train" --validpref "$work/bpe/valid" \
  --testpref "$work/bpe/test" --workers 2 --srcdict "$work/data/dict.zh.txt" \
  --joined-dictionary

# Train sb-six: SB-NMT, tanh, λ = 0.1, six triples
fairseq-train "$work/data-six" "${sb_transformer_wmt_en_de_big[@]}" \
  --save-dir "$work/sb-six" --sb-lambda 0.1 --warmup-updates 16000 --max-update 200000

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb-six/model.pt"

# Translate the test set with sb-six
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-six/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-six.jsonl" \
  --results-path "$work/results/sb-six.generate"

# Score sb-six
sbnmt evaluate "$work/results/sb-six.generate" "${score[@]}" \
  --records "$work/results/sb-six.jsonl" --output "$work/results/sb-six.json"

# Train sb-finetuned: SB-NMT from the teacher, two triples
fairseq-train "$work/data-two" "${sb_transformer_wmt_en_de_big[@]}" \
  --save-dir "$work/sb-finetuned" --finetune-from-model "$work/teacher-l2r/model.pt" \
  --sb-lambda 0.1 --warmup-updates 4000 --max-update 50000

# Its best checkpoint is the model
ln -sf checkpoint_best.pt "$work/sb-finetuned/model.pt"

# Translate the test set with sb-finetuned
fairseq-generate "$work/data" "${search[@]}" --path "$work/sb-finetuned/model.pt" \
  --gen-subset test --max-tokens 4000 --user-dir sbnmt_plugin --task sb_translation \
  --sb-records "$work/results/sb-finetuned.jsonl" \
  --results-path "$work/results/sb-finetuned.generate"

# Score sb-finetuned
sbnmt evaluate "$work/results/sb-finetuned.generate" "${score[@]}" \
  --records "$work/results/sb-finetuned.jsonl" \
  --output "$work/results/sb-finetuned.json"

# What the interaction is worth to abd in the search
sbnmt probe-interaction "$work/data" "${search[@]}" --path "$work/abd/model.pt" \
  --input "$work/bpe/test.zh" --reference "$work/text/test.en" \
  --reference "$work/text/test.en.2" --reference "$work/text/test.en.3" \
  --reference "$work/text/test.en.4" --max-tokens 4000 --lowercase \
  --json "$work/results/interaction/abd.json"

# What the interaction is worth to abd-two in the search
sbnmt probe-interaction "$work/data" "${search[@]}" --path "$work/abd-two/model.pt" \
  --input "$work/bpe/test.zh" --reference "$work/text/test.en" \
  --reference "$work/text/test.en.2" --reference "$work/text/test.en.3" \
  --reference "$work/text/test.en.4" --max-tokens 4000 --lowercase \
  --json "$work/results/interaction/abd-two.json"

# What the interaction is worth to sb in the search
sbnmt probe-interaction "$work/data" "${search[@]}" --path "$work/sb/model.pt" \
  --input "$work/bpe/test.zh" --reference "$work/text/test.en" \
  --reference "$work/text/test.en.2" --reference "$work/text/test.en.3" \
  --reference "$work/text/test.en.4" --max-tokens 4000 --lowercase \
  --json "$work/results/interaction/sb.json"

# How much the streams of sb read of each other
sbnmt probe-reading "$work/data" --path "$work/sb/model.pt" --max-tokens 4000 \
  --json "$work/results/reading/sb.json"

# What the interaction is worth to sb-six in the search
sbnmt probe-interaction "$work/data" "${search[@]}" --path "$work/sb-six/model.pt" \
  --input "$work/bpe/test.zh" --reference "$work/text/test.en" \
  --reference "$work/text/test.en.2" --reference "$work/text/test.en.3" \
  --reference "$work/text/test.en.4" --max-tokens 4000 --lowercase \
  --json "$work/results/interaction/sb-six.json"

# How much the streams of sb-six read of each other
sbnmt probe-reading "$work/data" --path "$work/sb-six/model.pt" --max-tokens 4000 \
  --json "$work/results/reading/sb-six.json"

# What the interaction is worth to sb-finetuned in the search
sbnmt probe-interaction "$work/data" "${search[@]}" \
  --path "$work/sb-finetuned/model.pt" --input "$work/bpe/test.zh" \
  --reference "$work/text/test.en" --reference "$work/text/test.en.2" \
  --reference "$work/text/test.en.3" --reference "$work/text/test.en.4" \
  --max-tokens 4000 --lowercase --json "$work/results/interaction/sb-finetuned.json"

# How much the streams of sb-finetuned read of each other
sbnmt probe-reading "$work/data" --path "$work/sb-finetuned/model.pt" \
  --max-tokens 4000 --json "$work/results/reading/sb-finetuned.json"

# The table
sbnmt table --recipe examples/nist_zh_en --work "$work"
