#!/usr/bin/env bash
# Set up .venv and run the whole chain on a toy language pair: raw text to BLEU, and to
# a model folder that translates raw text.
#
# usage: scripts/quickstart.sh [WORK]        (default: work/toy)
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:-work/toy}
sbnmt=${VENV:-.venv}/bin/sbnmt

scripts/setup.sh
"$sbnmt" recipe examples/toy --work "$work"
"${VENV:-.venv}/bin/python" examples/toy/check.py --work "$work"

# the folder of an earlier run may be of another model
rm -rf "$work/model"
"$sbnmt" bundle "$work/data" --path "$work/sb-shift/model.pt" --tokeniser none \
  --codes "$work/bpe/codes.src" "$work/bpe/codes.tgt" \
  --sb-rescore 1 --output "$work/model" >/dev/null
head -n 3 "$work/text/test.src" > "$work/three.src"
printf '\n%s\n\n' "$sbnmt translate $work/model < $work/three.src"
"$sbnmt" translate "$work/model" < "$work/three.src"
