#!/usr/bin/env bash
# Write requirements.lock, every package that setup.sh installs with the hash of its file,
# and requirements.licences.md, under what terms each comes.
#
# For Linux on x86-64, the Python of the environment, and torch for a CPU.
#
# usage: scripts/lock.sh
#   VENV=.venv               environment in which all of them are installed
set -euo pipefail
cd "$(dirname "$0")/.."

python=${VENV:-.venv}/bin/python
cpu_index=https://download.pytorch.org/whl/cpu
torch=torch==$(sed -n 's/^torch==//p' constraints.txt)+cpu
project=$(sed -n "s/.* -e '\\(.*\\)'$/\\1/p" scripts/setup.sh)  # with its extras
report=$(mktemp)
trap 'rm -f "$report"' EXIT

resolve=("$python" -m pip --disable-pip-version-check --quiet install --dry-run
  --ignore-installed --report "$report" -c constraints.txt "$torch"
  "$project")
"${resolve[@]}" 2>/dev/null || "${resolve[@]}" --extra-index-url "$cpu_index"

"$python" - "$report" <<'PY'
import json
import platform
import re
import sys
from importlib import metadata
from pathlib import Path

found = {}
for item in json.loads(Path(sys.argv[1]).read_text())["install"]:
    file = item["download_info"].get("archive_info")
    if file:  # not this project itself
        url = item["download_info"]["url"]
        line = f"{item['metadata']['name']}=={item['metadata']['version']}"
        line += f" --hash=sha256:{file['hashes']['sha256']}"
        found[item["metadata"]["name"]] = line + "  # source" * url.endswith(".tar.gz")
names = sorted(found, key=str.lower)
head = f"# Linux, {platform.machine()}, Python {platform.python_version()[:4]}, CPU."
head += " Made by scripts/lock.sh, for LOCKED=1 scripts/setup.sh\n"
Path("requirements.lock").write_text(head + "".join(found[n] + "\n" for n in names))


def licence(name):
    """A package's own words."""
    fields = metadata.metadata(name)
    classes = [x.split(" :: ")[-1] for x in fields.get_all("Classifier", [])
               if x.startswith("License ::") and not x.endswith("OSI Approved")]
    text = (fields.get("License") or "").strip().split("\n")[0]
    for words in (fields.get("License-Expression"), ", ".join(classes), text):
        if words and words.upper() != "UNKNOWN":
            return re.sub(r"[|]", "/", words)
    return "not said"


rows = [f"| {name} | {metadata.version(name)} | {licence(name)} |\n" for name in names]
Path("requirements.licences.md").write_text(
    "# Licences of the dependencies\n\n"
    "These are the packages that `scripts/setup.sh` installs, with the licence that each one\n"
    "states. None of them is part of this repository, which is MIT. `scripts/lock.sh` writes\n"
    "this page beside `requirements.lock`.\n\n"
    "| package | version | licence |\n| --- | --- | --- |\n" + "".join(rows)
)
PY
