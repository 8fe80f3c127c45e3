#!/usr/bin/env bash
# Make the report of a run of the toy recipe: other beam sizes, a trace, two pages.
#
# usage: examples/toy/report.sh [WORK]       (default: work/toy)
set -euo pipefail
cd "$(dirname "$0")/../.."
work=${1:-work/toy}
bin=${VENV:-.venv}/bin
export OMP_NUM_THREADS=1 # tiny matrices: threads only wait

"$bin/sbnmt" sweep-beam --work "$work" --rows teacher-l2r teacher-r2l sb-shift \
  --beams 1,2,4,8
# as in recipe.yaml
search=(--beam 4 --lenpen 0.6 --max-len-a 1.2 --max-len-b 10 --cpu)
head -n 20 "$work/bpe/test.src" >"$work/trace.src"
rm -f "$work/trace.jsonl"
log=$work/logs/trace.log
"$bin/fairseq-interactive" "$work/data" \
  --user-dir sbnmt_plugin --task sb_translation --path "$work/sb-shift/model.pt" \
  "${search[@]}" --input "$work/trace.src" --buffer-size 20 \
  --sb-trace "$work/trace.jsonl" >/dev/null 2>"$log" ||
  { cat "$log" >&2 && exit 1; } # fairseq's notes matter where it fails
"$bin/sbnmt" trace-page --trace "$work/trace.jsonl" --output "$work/trace.html"
"$bin/sbnmt" report --work "$work" --title "Toy" --output "$work/report"
