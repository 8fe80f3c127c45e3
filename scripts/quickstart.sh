#!/usr/bin/env bash
# Set up .venv and run the whole chain, raw text to BLEU, on a toy language pair.
#
# usage: scripts/quickstart.sh [WORK]        (default: work/toy)
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:-work/toy}

scripts/setup.sh
"${VENV:-.venv}/bin/sbnmt" recipe examples/toy --work "$work"
"${VENV:-.venv}/bin/python" examples/toy/check.py --work "$work"
