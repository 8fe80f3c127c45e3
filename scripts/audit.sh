#!/usr/bin/env bash
# Look up what requirements.lock names among the known vulnerabilities of Python packages.
# Exits with 1 if any is found.
#
# usage: scripts/audit.sh
#   VENV=.venv               environment, with pip-audit, or with this project's packages
#   ADVISORIES=FOLDER        a clone of https://github.com/pypa/advisory-database, for
#                            where pip-audit cannot ask the package index
set -euo pipefail
cd "$(dirname "$0")/.."

python=${VENV:-.venv}/bin/python
if [[ -z ${ADVISORIES:-} ]]; then
  "$python" -c 'import pip_audit' 2>/dev/null || {
    echo "audit.sh: error: pip-audit is not installed: run $python -m pip install pip-audit" >&2
    exit 2
  }
  # versions are exact, and "+cpu" is torch's own build of the version before it
  exec "$python" -m pip_audit --strict --disable-pip --no-deps \
    --requirement <(sed 's/+cpu//; s/ --hash.*//' requirements.lock)
fi
exec "$python" - "$ADVISORIES" requirements.lock <<'PY'
import re
import sys
from pathlib import Path

import yaml
from packaging.version import Version


def affected(version, package):
    """Whether a version is in one of a record's ranges or lists (OSV's schema)."""
    if str(version) in package.get("versions", ()):
        return True
    for span in package.get("ranges", ()):
        inside = False
        if span["type"] != "ECOSYSTEM":
            continue
        for event in span["events"]:
            (kind, text), = event.items()
            bound = Version(text)
            if kind == "introduced" and version >= bound:
                inside = True
            if kind == "fixed" and version >= bound:
                inside = False
            if kind == "last_affected" and version > bound:
                inside = False
        if inside:
            return True
    return False


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


folder = Path(sys.argv[1]) / "vulns"
if not folder.is_dir():
    sys.exit(f"ADVISORIES must be a clone with a folder vulns, but {folder} is none")
packages = records = found = 0
for line in Path(sys.argv[2]).read_text().splitlines():
    name, _, version = line.split(" ")[0].partition("==")
    if not version:
        continue
    packages += 1
    for path in sorted((folder / canonical(name)).glob("*.yaml")):
        record = yaml.safe_load(path.read_text())
        records += 1
        if "withdrawn" in record:
            continue
        if any(affected(Version(version.partition("+")[0]), p) for p in record["affected"]
               if canonical(p["package"]["name"]) == canonical(name)):
            found += 1
            print(f"{name} {version}: {record['id']} {', '.join(record.get('aliases', ()))}")
print(f"{packages} packages, {records} records about them, {found} that apply")
sys.exit(found > 0)
PY
