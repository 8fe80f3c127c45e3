#!/usr/bin/env bash
# Set up .venv and run the whole chain, raw text to BLEU, on a toy language pair; then
# make the report of it.
#
# usage: scripts/quickstart.sh [WORK]        (default: work/toy)
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:-work/toy}
python=${VENV:-.venv}/bin/python

scripts/setup.sh
"$python" scripts/run_recipe.py examples/toy --work "$work"
"$python" examples/toy/check.py --work "$work"

export OMP_NUM_THREADS=1 # tiny matrices: threads only wait
# as in recipe.yaml
search=(--lenpen 0.6 --max-len-a 1.2 --max-len-b 10 --max-tokens 4000 --cpu)
echo
echo "== report"
"$python" scripts/sweep_beam.py --work "$work" --beams 1,2,4,8 "${search[@]}"
if [[ ! -f $work/results/trace.jsonl ]]; then
  head -n 20 "$work/bpe/test.src" >"$work/trace.src"
  rm -f "$work/trace.new"
  "$python" -m fairseq_cli.interactive "$work/data" \
    --user-dir sbnmt_plugin --task sb_translation --path "$work/sb/model.pt" \
    --beam 4 "${search[@]}" --input "$work/trace.src" --buffer-size 20 \
    --sb-trace "$work/trace.new" >"$work/logs/trace.log" 2>&1
  mv "$work/trace.new" "$work/results/trace.jsonl"
fi
"$python" scripts/report.py --work "$work" --title "Toy" --output "$work/report"
