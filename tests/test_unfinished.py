"""Files and folders that appear when they are whole, also after a kill."""

import errno
import fcntl
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from steps import environment, put, ran

from sbnmt_plugin.tools import unfinished


def test_a_failure_leaves_the_old_file(tmp_path):
    path = put(tmp_path / "kept", "old")
    with pytest.raises(RuntimeError), unfinished.new_file(path) as file:
        file.write("new\n")
        raise RuntimeError
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_json_replaces_json_alone(tmp_path):
    path = tmp_path / "out"
    for value in {"a": 1}, [2]:
        unfinished.write_json(path, value)
        assert json.loads(path.read_text()) == value
    put(path, "Ein Satz.")
    with pytest.raises(FileExistsError, match=r"out must be a new file or one of JSON"):
        unfinished.write_json(path, {})
    assert path.read_text() == "Ein Satz.\n"


def test_a_full_disk_names_the_file(tmp_path):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(OSError, match=r"No space") as caught:  # noqa: SIM117
        with unfinished.new_file(tmp_path / "out"):
            raise full
    assert caught.value.filename == str(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_pipe_or_a_device_is_not_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in pipe, Path("/dev/stdout"), Path("/dev/fd/1"), Path("-"):
        with (
            pytest.raises(OSError, match="no regular file"),
            unfinished.new_file(path) as file,
        ):
            file.write("text")
    assert pipe.is_fifo()
    with unfinished.new_file(tmp_path / "plain") as file:
        file.write("text")
    assert (tmp_path / "plain").read_text() == "text"


def left_by(pid, path):
    """What a process of that number would leave if it were killed."""
    return path.with_name(f".{path.name}.{pid}.tmp")


def test_what_a_killed_writer_has_left_is_removed_by_the_next(tmp_path):
    path, other = tmp_path / "out.tsv", tmp_path / "out.tsv.more"
    abandoned = left_by(4_000_001, path)
    abandoned.write_text("half a li")
    folder = left_by(4_000_002, path)
    (folder / "inner").mkdir(parents=True)
    kept = [left_by(4_000_001, other), tmp_path / ".out.tsv.tmp"]
    for name in kept:
        name.touch()  # of another file, and of another kind
    with unfinished.new_file(path) as file:
        file.write("whole\n")
    assert sorted(tmp_path.iterdir()) == sorted([path, *kept])


def test_what_another_is_writing_is_left_alone(tmp_path):
    path = tmp_path / "out"
    with open(left_by(4_000_001, path), "w") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        with unfinished.new_file(path) as file:
            file.write("ours\n")
        assert os.path.exists(theirs.name)
    assert path.read_text() == "ours\n"


def test_two_writers_of_one_name_take_turns(tmp_path):
    """Of the same number on two machines that share the folder."""
    path = tmp_path / "out"
    words = "import os, sys, time\nsys.argv[0] = 'sbnmt'  # which imports no torch\n"
    words += "from sbnmt_plugin.tools.unfinished import new_file\n"
    words += "os.getpid = lambda: 7\n"
    words += "with new_file(sys.argv[1]) as file:\n"
    words += "    for i in range(200):\n"
    words += "        file.write(sys.argv[2] + '\\n')\n"
    words += "        file.flush(); time.sleep(0.001)\n"
    started = [
        subprocess.Popen([sys.executable, "-c", words, path, name], env=environment())
        for name in ("a", "b")
    ]
    assert [process.wait() for process in started] == [0, 0]
    lines = path.read_text().split()
    assert len(lines) == 200 and len(set(lines)) == 1
    assert list(tmp_path.iterdir()) == [path]


ENDED = """
import os, signal, sys
sys.argv[0] = "sbnmt"  # which imports no torch
from pathlib import Path
from sbnmt_plugin.tools import command, unfinished
place = Path(sys.argv[1])
def act():
    with unfinished.new_folder(place / "a"), unfinished.new_file(place / "b"):
        print(len(os.listdir(place)))
        os.kill(os.getpid(), signal.SIGTERM)
command.run(act)
"""


def test_the_end_by_sigterm_leaves_nothing(tmp_path):
    """A batch system ends a job in this way."""
    done = ran([sys.executable, "-c", ENDED, tmp_path], env=environment())
    assert (done.stdout, done.returncode) == ("2\n", 128 + signal.SIGTERM), done.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_appears_when_it_is_whole_and_replaces_the_old(tmp_path):
    path = tmp_path / "report"
    for content in ("one", "two"):
        with unfinished.new_folder(path) as folder:
            (folder / "file").write_text(content)
            assert not path.exists() or (path / "file").read_text() == "one"
    assert (path / "file").read_text() == "two"
    with pytest.raises(KeyError), unfinished.new_folder(path) as folder:
        (folder / "file").write_text("three")
        raise KeyError
    assert (path / "file").read_text() == "two"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_between_old_and_new_leaves_the_old_folder(tmp_path, monkeypatch):
    path, rename = tmp_path / "report", unfinished.rename
    put(path / "file", "old")

    def stopped(source, target):
        if target == path and not path.exists() and (source / "new").exists():
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(unfinished, "rename", stopped)
    with pytest.raises(KeyboardInterrupt), unfinished.new_folder(path) as folder:
        put(folder / "new", "new")
    assert [x.name for x in tmp_path.rglob("*")] == ["report", "file"]


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    for content in "one", "two":
        with unfinished.new_folder(link) as folder:
            put(folder / "file", content)
    assert link.is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "two\n"


# power failures


class Disk:
    """What a power failure would leave: watches which contents and names are synced.

    Attributes:
        synced: of each file or folder, what it held when it was synced last.
        unsafe: names that were given to what was not on disk.
        pending: folders whose names have changed since they were synced.
    """

    def __init__(self):
        self.synced, self.unsafe, self.pending = {}, [], set()

    def watch(self, patch):
        sync, replace = os.fsync, os.replace

        def synced(handle):
            sync(handle)
            path = Path(os.readlink(f"/proc/self/fd/{handle}"))
            self.synced[path.stat().st_ino] = self.held(path)
            self.pending.discard(path.stat().st_ino)

        def renamed(old, new):
            old = Path(old)
            for path in (old, *old.rglob("*")):
                if self.synced.get(path.stat().st_ino) != self.held(path):
                    self.unsafe.append(path.name)
            replace(old, new)
            self.pending.add(Path(new).parent.stat().st_ino)

        patch.setattr(os, "fsync", synced)
        patch.setattr(os, "replace", renamed)

    def held(self, path):
        return path.read_bytes() if path.is_file() else sorted(os.listdir(path))


def write_all(folder):
    """Use every function of the module that gives a name to a file or folder."""
    with unfinished.new_file(folder / "in" / "text") as file:
        file.write("line\n" * 3000)
    unfinished.write_json(folder / "in" / "numbers", [1])
    for _ in range(2):
        with unfinished.new_folder(folder / "all") as made:
            (made / "part").mkdir()
            put(made / "part" / "piece", "inner")
            put(made / "page", "outer")
    put(folder / "copy", "whole")
    unfinished.rename(folder / "copy", folder / "in" / "copy")


def assert_survives(folder):
    disk = Disk()
    with pytest.MonkeyPatch.context() as patch:
        disk.watch(patch)
        write_all(folder)
    assert not disk.unsafe, f"names of what is not on disk: {disk.unsafe}"
    assert not disk.pending, "names that are not on disk"


def test_what_has_a_name_is_on_disk(tmp_path):
    assert_survives(tmp_path)


@pytest.mark.parametrize("left_out", ["file", "folder", "part of a folder"])
def test_the_check_of_the_disk_can_fail(tmp_path, monkeypatch, left_out):
    sync, count = unfinished.sync, itertools.count()

    def broken(*paths):
        for path in paths:
            kind = "file" if path.is_file() else "folder"
            part = left_out == "part of a folder" and next(count) == 7
            if kind != left_out and not part:
                sync(path)

    monkeypatch.setattr(unfinished, "sync", broken)
    with pytest.raises(AssertionError, match="not on disk"):
        assert_survives(tmp_path)


def test_a_file_system_that_syncs_no_folders_is_enough(tmp_path, monkeypatch):
    sync = os.fsync

    def refused(handle):
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        sync(handle)

    monkeypatch.setattr(os, "fsync", refused)
    write_all(tmp_path)
    broken = OSError(errno.EIO, os.strerror(errno.EIO))
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(broken))
    with pytest.raises(OSError, match="Input/output error") as caught:
        unfinished.write_json(tmp_path / "numbers", 1)
    assert caught.value.filename == str(tmp_path / "numbers")
