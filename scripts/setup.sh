#!/usr/bin/env bash
# Create .venv with everything that the plugin, its commands and its tests need.  A
# finished .venv is used again.  If `nvidia-smi` is available, the CUDA build of PyTorch
# is installed, else the one for CPUs.
#
# usage: scripts/setup.sh
#   PYTHON=python3.12        interpreter to create .venv with.  Without it: python3,
#                            python3.12 or python3.11, the first that is Python 3.11
#                            or 3.12; else uv installs Python 3.12
#   VENV=.venv               where to create it
#   LOCKED=1                 exactly the files of requirements.lock, by their hashes
#                            (Linux on x86-64, Python 3.11, CPU)
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}
cpu_index=https://download.pytorch.org/whl/cpu
versions=(3.12 3.11)
[[ -z ${LOCKED:-} ]] || versions=(3.11)

say() { printf '\n== %s\n' "$*"; }
die() { printf 'setup.sh: error: %s\n' "$*" >&2; exit 1; }

# Check that an interpreter starts and has one of the versions.
fits() {
  local version
  version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) &&
    [[ " ${versions[*]} " == *" $version "* ]]
}

# Create the environment with the first interpreter that fits.
create() {
  local name candidates=(python3 "${versions[@]/#/python}")
  if [[ -n ${PYTHON:-} ]]; then
    command -v "$PYTHON" >/dev/null || die "PYTHON=$PYTHON was not found."
    fits "$PYTHON" ||
      die "PYTHON must be one of Python ${versions[*]}, but $PYTHON is" \
        "$("$PYTHON" --version 2>&1)."
    candidates=("$PYTHON")
  fi
  for name in "${candidates[@]}"; do
    if fits "$name"; then
      say "Creating $venv with $("$name" --version)"
      "$name" -m venv "$venv"
      return
    fi
  done
  local uv=(venv --python "${versions[0]}" --seed "$venv")  # --seed installs pip
  if command -v uv >/dev/null; then
    say "Creating $venv with Python ${versions[0]}, which uv provides"
    uv "${uv[@]}" && return
  fi
  die "none of ${candidates[*]} is one of Python ${versions[*]}.  Choose one command:
  Debian, Ubuntu:  sudo apt-get install pipx && pipx run uv ${uv[*]} && scripts/setup.sh
  conda:           conda create -n sbnmt python=${versions[0]} && conda activate sbnmt && scripts/setup.sh
  uv:              curl -LsSf https://astral.sh/uv/install.sh | sh && PATH=~/.local/bin:\$PATH scripts/setup.sh"
}

stamp=$(cat setup.py constraints.txt | cksum)
locked="$stamp, locked $(cksum <requirements.lock)"
[[ -z ${LOCKED:-} ]] || stamp=$locked
there=$(cat "$venv/.installed" 2>/dev/null || true)
if [[ $there == "$stamp" || $there == "$locked" ]]; then  # locked versions are good for all
  say "$venv is complete"
  exit 0
fi

command -v cc >/dev/null || command -v gcc >/dev/null ||
  say "Note: there is no C compiler, so a package without a wheel would fail to build"

[[ -x $venv/bin/pip ]] || create  # python alone is what an interrupted creation leaves
fits "$venv/bin/python" ||
  die "$venv must have one of Python ${versions[*]}, but has" \
    "$("$venv/bin/python" --version 2>&1).  Remove it and run scripts/setup.sh again."
# twice quiet: errors, but no warnings of package indexes that lack a package
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet --quiet)

if [[ -n ${LOCKED:-} ]]; then
  say "Installing the files of requirements.lock, by their hashes"
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
  say "PyTorch is installed already"
elif command -v nvidia-smi >/dev/null; then
  say "Installing PyTorch $torch for GPUs"
  "${pip[@]}" install "torch==$torch"
else
  say "Installing PyTorch $torch for CPUs"
  "${pip[@]}" install "torch==$torch+cpu" 2>/dev/null ||
    "${pip[@]}" install "torch==$torch+cpu" --extra-index-url "$cpu_index"
fi

say "Installing fairseq, the plugin and the tools of its reports and tests"
"${pip[@]}" install -c constraints.txt -e '.[test,report,phrases,benchmark,align,cluster,sentencepiece]'
printf '%s' "$stamp" >"$venv/.installed"
say "$venv is ready"
