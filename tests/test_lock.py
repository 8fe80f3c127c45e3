"""requirements.lock: every file by its hash, of the versions that are known to work."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from commands import ROOT

LINE = re.compile(r"([\w.-]+)==(\S+) --hash=sha256:[0-9a-f]{64}(?:  # source)?")


def name_of(package):
    """As indexes compare names."""
    return package.lower().replace("-", "_")


def versions(text):
    """name -> version of what a lock file pins.

    Raises:
        AssertionError: a line without a hash, or with anything else.
    """
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match, line
            found[name_of(match[1])] = match[2]
    return found


def test_the_lock_has_the_versions_of_the_constraints():
    locked = versions((ROOT / "requirements.lock").read_text())
    constraints = (ROOT / "constraints.txt").read_text()
    pinned = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", constraints, re.M))
    pinned = {name_of(name): version for name, version in pinned.items()}
    both = locked.keys() & pinned.keys()
    assert len(both) > 70
    for name in both:
        assert locked[name].removesuffix("+cpu") == pinned[name], name
    setup = (ROOT / "setup.py").read_text()
    installed = (ROOT / "scripts" / "setup.sh").read_text()
    (extras,) = re.findall(r"-e '\.\[([\w,]+)\]'", installed)
    lists = dict(re.findall(r'(\w+)"?[:=] ?\[(.*?)\]', setup, re.S))
    asked = " ".join(lists[name] for name in ["install_requires", *extras.split(",")])
    names = {name_of(name) for name in re.findall(r'"([\w-]+)[=<>"]', asked)}
    assert len(names) > 15 and names - {"fairseq_fixed"} <= locked.keys()


@pytest.mark.parametrize(
    "line",
    [
        "a==1",
        "a>=1 --hash=sha256:" + 64 * "0",
        "--index-url https://x",
        "a==1 # source",
    ],
)
def test_a_line_without_a_hash_would_be_seen(line):
    with pytest.raises(AssertionError):
        versions(line)


def test_every_locked_package_has_its_licence_listed():
    page = (ROOT / "requirements.licences.md").read_text()
    rows = re.findall(r"^\| ([\w.-]+) \| (\S+) \| (.+) \|$", page, re.M)
    listed = {name_of(name): version for name, version, licence in rows[2:]}
    assert listed == versions((ROOT / "requirements.lock").read_text())
    assert not [name for name, _, licence in rows if licence in ("not said", "")]


@pytest.mark.parametrize(
    ("events", "more", "found"),
    [
        ([{"introduced": "0"}, {"fixed": "99"}], {}, 1),
        ([{"introduced": "0"}, {"fixed": "1.0"}], {}, 0),
        ([{"introduced": "99"}], {}, 0),
        ([{"introduced": "0"}, {"last_affected": "99"}], {}, 1),
        ([{"introduced": "0"}, {"last_affected": "1"}], {}, 0),
        ([{"introduced": "0"}, {"fixed": "1"}, {"introduced": "2"}], {}, 1),
        ([{"introduced": "0"}], {"withdrawn": "2024-01-01"}, 0),
    ],
)
def test_known_vulnerabilities_are_found(tmp_path, events, more, found):
    ranges = [{"type": "ECOSYSTEM", "events": events}]
    affected = [{"package": {"name": "Torch"}, "ranges": ranges}]
    record = {"id": "PYSEC-1", "aliases": ["CVE-1"], "affected": affected, **more}
    path = tmp_path / "vulns" / "torch" / "PYSEC-1.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(record))
    done = audit(tmp_path)
    assert done.returncode == found, done.stderr
    assert f"1 records about them, {found} that apply" in done.stdout
    assert ("PYSEC-1 CVE-1" in done.stdout) == bool(found)


def test_a_folder_without_records_is_no_clean_bill(tmp_path):
    done = audit(tmp_path)
    assert done.returncode == 1 and "must be a clone with a folder vulns" in done.stderr


def audit(advisories):
    venv = Path(sys.executable).parent.parent
    return subprocess.run(
        [ROOT / "scripts" / "audit.sh"],
        env={**os.environ, "ADVISORIES": str(advisories), "VENV": str(venv)},
        capture_output=True,
        text=True,
    )
