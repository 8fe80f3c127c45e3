#!/usr/bin/env bash
# Pseudo targets of teachers that have not seen the sentence (cross-fitting): two of each
# direction, each trained on one half of the text, translate the half of the other.
# As many updates as a teacher of the whole text.  The lines of this text are short and long
# by turns, so a half takes two lines, and leaves two.
#
# usage: examples/multi30k/crossed.sh WORK CROSSED
#   WORK: of `sbnmt recipe multi30k --small --work WORK …`, for its text and dictionary
#   CROSSED: a folder; CROSSED/pseudo is for `sbnmt recipe … --pseudo CROSSED/pseudo`
#
# What is there already is kept: killed and repeated, it goes on.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=${1:?"give WORK and CROSSED, as said above"}
crossed=${2:?"give WORK and CROSSED, as said above"}
PATH=${VENV:-.venv}/bin:$PATH # where scripts/setup.sh installs
export OMP_NUM_THREADS=1      # two trainings side by side

# a teacher's options are those of the recipe
eval "$(sbnmt recipe examples/multi30k --small --print |
  sed -n '/^train=($/,/^)$/p; /^transformer=($/,/^)$/p; /^transformer=(.*)$/p')"
search=(--cpu --beam 4 --lenpen 0.6 --max-len-a 1.2 --max-len-b 10 --max-tokens 16000)

mkdir -p "$crossed/logs" "$crossed/pseudo"
for half in 0 1; do # sentences 0, 1, 4, 5, 8 … and 2, 3, 6, 7, 10 …
  for end in en de; do
    awk -v half="$half" 'int((NR - 1) / 2) % 2 == half' \
      "$work/bpe/train.$end" >"$crossed/$half.$end"
  done
  [[ -d $crossed/data-$half ]] || sbnmt binarise -s en -t de \
    --srcdict "$work/data/dict.en.txt" --joined-dictionary --workers 2 \
    --trainpref "$crossed/$half" --validpref "$work/bpe/valid" \
    --destdir "$crossed/data-$half"
done

# teacher HALF DIRECTION: train it on this half, translate the other
teacher() {
  local own=$1 other=$((1 - $1)) direction=$2 folder="$crossed/teacher-$2-$1"
  [[ -e $folder/done ]] || fairseq-train "$crossed/data-$own" "${transformer[@]:?}" \
    --sb-direction "$direction" --save-dir "$folder"
  touch "$folder/done"
  sbnmt translate "$crossed/data-$own" "${search[@]}" --sb-direction "$direction" \
    --path "$folder/checkpoint_best.pt" --input "$crossed/$other.en" \
    --output "$crossed/$other.$direction.tsv"
}

for direction in l2r r2l; do
  teacher 0 $direction >"$crossed/logs/0.$direction.log" 2>&1 &
  first=$!
  teacher 1 $direction >"$crossed/logs/1.$direction.log" 2>&1 &
  second=$!
  wait $first
  wait $second
  # the number of a sentence in its half becomes its number in the text
  for half in 0 1; do
    awk -F '\t' -v OFS='\t' -v half=$half '{ $1 = 2 * $1 - $1 % 2 + 2 * half; print }' \
      "$crossed/$half.$direction.tsv"
  done | sort -n >"$crossed/pseudo/$direction.tsv"
done
cp "$work/bpe/train.en" "$crossed/pseudo/train.en"
wc -l "$crossed"/pseudo/*.tsv
