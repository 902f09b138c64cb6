"""The lines of an audit log, and the file that they are appended to."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ha.conf.keys.security import AuditFormat
from ha.security.audit_text import Entry, hadoop_line, json_line


def lines_of(form: AuditFormat, entry: Entry) -> Iterator[str]:
    """Yield an entry in each of the configured forms, JSON first."""
    now = time.time()
    if form is not AuditFormat.HADOOP:
        yield json_line(entry, _stamp(now, "%Y-%m-%dT%H:%M:%S", ".", time.gmtime) + "Z")
    if form is not AuditFormat.JSON:
        # In local time, as Hadoop's.
        yield hadoop_line(entry, _stamp(now, "%Y-%m-%d %H:%M:%S", ",", time.localtime))


def append(path: Path, lines: Sequence[str]) -> None:
    """Add lines to a file, which is made for its user and group alone.

    It is opened for each time: a program that rotates it by a new name needs to notify no process.

    Raises:
        OSError: it cannot be written, for instance because it is a symbolic link.
    """
    data = "".join(f"{line}\n" for line in lines).encode()
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o640)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def _stamp(now: float, form: str, mark: str, parts: Callable[[float], time.struct_time]) -> str:
    return f"{time.strftime(form, parts(now))}{mark}{int(now * 1000) % 1000:03d}"
