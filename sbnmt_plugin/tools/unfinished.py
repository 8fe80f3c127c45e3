"""Files and folders that appear under their name when they are whole.

Until then they lie beside it as ``.NAME.PID.tmp``, locked by the process that writes
them.  So the remains of a killed process can be told from the work of another one,
perhaps on another machine; the next that writes NAME removes remains.  The contents
are on disk before they have the name, so that a power failure leaves nothing half.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

# where names are not files': /dev/stdout is a link, even to a regular file
DEVICES = "/dev", "/dev/fd", "/proc/self/fd"
UNFINISHED = re.compile(r"\.(.+)\.\d+\.(tmp|old)")


def beside(path: Path, ending: str = "tmp") -> Path:
    """Return the temporary name of a file or folder."""
    return path.with_name(f".{path.name}.{os.getpid()}.{ending}")


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Write a file under a temporary name; it appears when all is written.

    Args:
        mode: ``w`` for UTF-8 text, ``wb`` for bytes.

    Raises:
        OSError: it cannot be written, with ``path`` as its file name.
    """
    path = Path(path)
    temporary = beside(path)
    form: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        refuse_special(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(path)
        with held(temporary, os.O_RDWR | os.O_CREAT) as handle:
            try:
                os.ftruncate(handle, 0)
                with open(handle, mode, closefd=False, **form) as file:
                    yield file
                rename(temporary, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    temporary.unlink()  # while it is held, for then it is ours
                raise
    except OSError as error:
        if error.errno and error.filename in (None, str(temporary)):
            raise type(error)(error.errno, error.strerror, str(path)) from error
        raise


def refuse_special(path: Path) -> None:
    """Refuse an output that is a folder, a stream or a device.

    Raises:
        OSError: it is one, with the path as its file name.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    special = str(path) == "-" or (path.exists() and not path.is_file())
    if special or str(path.absolute().parent) in DEVICES:
        problem = "no regular file, and would be replaced by one"
        raise OSError(errno.EINVAL, problem, str(path))


def rename(old: Path, new: Path) -> None:
    """Give a whole file or folder its name, in place of a file that has it."""
    sync(*old.rglob("*"), old)
    os.replace(old, new)
    sync(new.parent)


def sync(*paths: Path) -> None:
    """Wait until the contents of files, and the names in folders, are on disk."""
    for path in paths:
        with opened(path) as handle:
            try:
                os.fsync(handle)
            except OSError as error:
                if error.errno != errno.EINVAL:  # of file systems that sync no folders
                    raise


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value as JSON; the file appears when all is written.

    Raises:
        FileExistsError: another kind of file would be lost.
    """
    if os.path.isfile(path):
        with open(path, "rb") as file:
            if file.read(99).lstrip()[:1] not in (b"", b"{", b"["):
                raise FileExistsError(
                    f"{path} must be a new file or one of JSON, but is another: remove "
                    "it, or choose another name for the result"
                )
    with new_file(path) as file:
        json.dump(value, file, indent=1, ensure_ascii=False)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a folder under a temporary name; it appears when all is written.

    Yields:
        The folder to write to.

    Raises:
        OSError: it cannot be made.
    """
    path = path.resolve()  # a link stays, and "." has a name
    temporary, old = beside(path), beside(path, "old")
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(path)
    try:
        temporary.mkdir()
        with held(temporary):
            yield temporary
            if path.exists():
                rename(path, old)
            rename(temporary, path)
    finally:
        if old.exists() and not path.exists():
            rename(old, path)
        for left in (temporary, old):
            shutil.rmtree(left, ignore_errors=True)


def refuse_existing(flag: str, path: str | os.PathLike[str]) -> None:
    """Refuse a folder that exists already.

    Raises:
        FileExistsError: with the flag by which the user gave it.
    """
    if os.path.exists(path):
        raise FileExistsError(
            f"{flag} {path} must be a new folder, but exists: remove it or choose "
            "another"
        )


@contextlib.contextmanager
def opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open a file or folder, and yield its file descriptor."""
    handle = os.open(path, flags, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def held(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open and lock a file or folder that nobody else may take for abandoned.

    Yields:
        Its file descriptor.
    """
    while True:  # it may be taken for abandoned just before it is locked
        with opened(path, flags) as handle:
            if lock(handle, path):
                yield handle
                return


def lock(handle: int, path: Path) -> bool:
    """Lock an open file, and return whether it still has its name."""
    with contextlib.suppress(OSError):  # file systems without locks: nothing is removed
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def remove_abandoned(path: Path) -> None:
    """Remove the remains of a file or folder that killed processes have left.

    What somebody holds stays, and so does what nobody can tell of.
    """
    for left in path.parent.iterdir():
        found = UNFINISHED.fullmatch(left.name)
        if found and found[1] == path.name:
            with contextlib.suppress(OSError), opened(left) as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if left.is_dir():
                    shutil.rmtree(left)
                else:
                    left.unlink()
