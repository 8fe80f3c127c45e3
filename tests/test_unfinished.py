"""Files and folders that appear when they are whole, also after a kill."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from steps import environment, put

from sbnmt_plugin.tools import unfinished


def test_a_failure_leaves_the_old_file(tmp_path):
    path = put(tmp_path / "kept", "old")
    with pytest.raises(RuntimeError), unfinished.new_file(path) as file:
        file.write("new\n")
        raise RuntimeError
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


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
    for path in pipe, Path("/dev/stdout"), Path("/dev/fd/1"):
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
