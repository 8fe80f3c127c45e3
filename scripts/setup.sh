#!/usr/bin/env bash
# Create .venv with everything the plugin, its scripts and its tests need, or re-use it.
#
# usage: scripts/setup.sh
#   PYTHON=python3.12        interpreter to create .venv with (3.10, 3.11 or 3.12)
#   VENV=.venv               where to create it
#   LOCKED=1                 exactly the files of requirements.lock, by their hashes
#                            (Linux on x86-64, Python 3.11, CPU)
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}
python=${PYTHON:-python3}
cpu_index=https://download.pytorch.org/whl/cpu

say() { printf '\n== %s\n' "$*"; }
die() { printf 'setup.sh: error: %s\n' "$*" >&2; exit 1; }

stamp=$(cat setup.py constraints.txt | cksum)
locked="$stamp, locked $(cksum <requirements.lock)"
[[ -z ${LOCKED:-} ]] || stamp=$locked
there=$(cat "$venv/.installed" 2>/dev/null || true)
if [[ $there == "$stamp" || $there == "$locked" ]]; then  # locked versions are good for all
  say "re-using $venv"
  exit 0
fi

command -v "$python" >/dev/null || die "$python not found: set PYTHON=…"
"$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' ||
  die "PYTHON must be 3.10, 3.11 or 3.12, but is $("$python" --version 2>&1)"
command -v cc >/dev/null || command -v gcc >/dev/null ||
  say "note: no C compiler found; a package without a wheel would fail to build"

say "creating $venv with $("$python" --version)"
[[ -x $venv/bin/python ]] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)

if [[ -n ${LOCKED:-} ]]; then
  say "installing what requirements.lock names, by hashes"
  locked=("${pip[@]}" install --no-deps --require-hashes)
  # what comes as source is built last, by tools that have come with hashes, too
  grep -v '# source$' requirements.lock >"$venv/wheels.lock"
  "${locked[@]}" -r "$venv/wheels.lock" 2>/dev/null ||
    "${locked[@]}" -r "$venv/wheels.lock" --extra-index-url "$cpu_index"
  "${locked[@]}" --no-build-isolation -r requirements.lock
  "${pip[@]}" install --no-deps --no-build-isolation -e .
  printf '%s' "$stamp" >"$venv/.installed"
  say "$venv is ready"
  exit 0
fi

# torch first and pinned: a looser wish fetches gigabytes of CUDA packages
torch=$(sed -n 's/^torch==//p' constraints.txt)
if "$venv/bin/python" -c 'import torch' 2>/dev/null; then
  say "torch is there already"
elif command -v nvidia-smi >/dev/null; then
  say "installing torch $torch for the GPU"
  "${pip[@]}" install "torch==$torch"
else
  say "installing torch $torch for the CPU"
  "${pip[@]}" install "torch==$torch+cpu" 2>/dev/null ||
    "${pip[@]}" install "torch==$torch+cpu" --extra-index-url "$cpu_index"
fi

say "installing fairseq, the plugin, its report and the tools of its tests"
"${pip[@]}" install -c constraints.txt -e '.[test,report,benchmark,align,cluster]'
printf '%s' "$stamp" >"$venv/.installed"
say "$venv is ready"
