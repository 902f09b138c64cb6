"""Where certificates lie: folders of mode 0700 with files of mode 0600, whole or not there at all.

An authority's folder has ``ca.key`` and ``ca.pem``, a leaf's ``ca.pem`` (whom it trusts),
``cert.pem``, ``key.pem`` and perhaps ``revoked.txt``.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ha.security.certificates import Pair
from ha.security.names import BadName, CertifiedName, named_by

CA: Final = "ca.pem"
CA_KEY: Final = "ca.key"
CERT: Final = "cert.pem"
KEY: Final = "key.pem"
REQUEST: Final = "request.pem"
REVOKED: Final = "revoked.txt"
NEXT: Final = "next"
"""Below an authority's folder: the authority that follows it."""


class Present(Exception):
    """Something is there already, and nothing was changed."""


def new_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make a folder with these files: it appears with all of them, or not at all.

    Raises:
        Present: it has something in it already.
        OSError: it cannot be made.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Present(f"{folder} is there already, and nothing in it is ever replaced")
    half = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, data in files.items():
            _write(half / name, data)
        _sync(half)
        try:
            half.rename(folder)  # over an empty folder, too, but over nothing else
        except OSError as failure:
            if folder.exists():
                raise Present(f"{folder} is there already: {failure.strerror}") from failure
            raise
        _sync(folder.parent)
    finally:
        shutil.rmtree(half, ignore_errors=True)


def replace(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put these in place of those before, each at once; raises OSError, with nothing half-written.

    A daemon that looks in between keeps what it had until all of them are there.
    """
    fresh: list[tuple[Path, Path]] = []
    try:
        for name, data in files.items():
            half = Path(tempfile.mktemp(prefix=f".{name}.", dir=folder))
            fresh.append((half, folder / name))
            _write(half, data)
        for half, name_ in fresh:
            half.replace(name_)
        _sync(folder)
    finally:
        for half, _ in fresh:
            half.unlink(missing_ok=True)


def read_authority(folder: Path) -> Pair:
    """Read the authority of a folder: of a bundle the one whose key lies there; raise OSError."""
    return Pair((folder / CA).read_bytes(), (folder / CA_KEY).read_bytes())


def revoked_lines(text: str) -> frozenset[str]:
    """Parse a list of revocations: serials in lower-case hex, and names as URIs.

    Raises:
        BadName: a line is neither, so that the list would protect less than its owner thinks.
    """
    found = set()
    for line in text.splitlines():
        word = line.partition("#")[0].strip()
        if word:
            found.add(revocation(word))
    return frozenset(found)


def revocation(word: str) -> str:
    """Return a serial or a URI as the list has it; raise ``BadName``."""
    if word.startswith("nnha:"):
        named: CertifiedName = named_by([word])
        return named.uri
    digits = word.lower().replace(":", "").removeprefix("0x").lstrip("0")
    if not digits or not all(digit in "0123456789abcdef" for digit in digits):
        raise BadName(f"{word!r} is neither a serial in hex nor nnha://CLUSTER/ROLE/NAME")
    return digits


def _write(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as out:  # noqa: PTH123 - a descriptor
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
