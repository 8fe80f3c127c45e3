#!/usr/bin/env bash
# Build fastBPE into .venv.  Its bundled C++ is stale for Python ≥ 3.11, so it is made
# anew by Cython, which has to be there before the build starts.
#
# usage: scripts/install_fastbpe.sh
set -euo pipefail
cd "$(dirname "$0")/.."
pip=("${VENV:-.venv}/bin/python" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" install -c constraints.txt cython wheel setuptools
"${pip[@]}" install --no-build-isolation 'fastBPE==0.1.0'
"${VENV:-.venv}/bin/python" -c 'import fastBPE; print("fastBPE is ready")'
