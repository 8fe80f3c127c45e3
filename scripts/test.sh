#!/usr/bin/env bash
# Set up .venv and run linters, type checks and all tests.
#
# usage: scripts/test.sh [pytest's options]
#   JOBS=2                   processes that share the tests, file by file
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
bin=${VENV:-.venv}/bin

echo "== ruff"
"$bin/ruff" check .
"$bin/ruff" format --check .
echo "== shellcheck"
"$bin/shellcheck" scripts/*.sh examples/*/*.sh .ci/run
echo "== mypy"
"$bin/mypy"
echo "== pytest"
# -rs says at the end what was skipped, and what to install
share=(-n "${JOBS:-2}" --dist loadfile --no-loadscope-reorder) # files in their order
share+=(--max-worker-restart 0) # a test that hangs would be run again in a new process
"$bin/python" -m pytest "${share[@]}" -rs "$@"
