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
status=0
"$bin/python" -m pytest -n "${JOBS:-2}" --dist loadfile "$@" || status=$?
if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then
  # stands last, where it is seen: a skipped test is one letter among hundreds of dots
  echo "note: no chromium, so the tests of the report's page were skipped: sudo apt-get install chromium chromium-driver"
fi
exit "$status"
