#!/usr/bin/env bash
# Set up .venv and run linters, type checks and all tests.
#
# usage: scripts/test.sh [pytest's options]
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
bin=${VENV:-.venv}/bin

echo "== ruff"
"$bin/ruff" check .
"$bin/ruff" format --check .
echo "== shellcheck"
"$bin/shellcheck" scripts/*.sh examples/toy/*.sh .ci/run
echo "== mypy"
"$bin/mypy"
echo "== pytest"
"$bin/python" -m pytest "$@"
