"""Names of image files and the digests next to them.

See docs/reference/formats.md#image-names-and-digests.
"""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from hadoop.durable import write_durably
from journal.model import TxId
from namenode_sim.image.errors import ImageError

_CHUNK_BYTES: Final = 1024 * 1024
_DIGEST_LINE = re.compile(r"([0-9a-f]{32}) [ *](.+)")
_RESTORE = (
    "Do not start from it: take a sound copy from another name directory or NameNode, or move "
    "both files away to fall back to an older image, whose edits must then still be there."
)


def image_name(txid: TxId) -> str:
    """Return the name of the image of everything up to and including an edit."""
    return f"fsimage_{txid:019d}"


def unfinished_name(txid: TxId) -> str:
    """Return the name of an image that is being written."""
    return f"fsimage.ckpt_{txid:019d}"


def digest_path(image: Path) -> Path:
    return image.with_name(image.name + ".md5")


def write_digest(image: Path, digest: str) -> None:
    """Put an image's digest next to it, durably."""
    write_durably(digest_path(image), f"{digest} *{image.name}\n".encode())


def read_digest(image: Path) -> str:
    """Return the digest that an image must have.

    Raises:
        ImageError: if there is none, or it is another image's.
    """
    path = digest_path(image)
    try:
        line = path.read_text("utf-8", "replace").strip()
    except FileNotFoundError:
        raise ImageError(
            f"{image} has no digest: {path.name} is missing. Nothing tells whether the image is "
            f"whole. {_RESTORE}"
        ) from None
    match = _DIGEST_LINE.fullmatch(line)
    if match is None or match[2] != image.name:
        raise ImageError(
            f"{path} holds {line[:80]!r}, expected a digest of {image.name}. {_RESTORE}"
        )
    return match[1]


def check_digest(image: Path, opened: Callable[[Path], BinaryIO] | None = None) -> None:
    """Compare an image with its digest; ``opened`` opens it in another way than usual.

    Raises:
        ImageError: if they differ; says both.
    """
    expected = read_digest(image)
    found = hashlib.md5(usedforsecurity=False)
    with image.open("rb") if opened is None else opened(image) as file:
        while chunk := file.read(_CHUNK_BYTES):
            found.update(chunk)
    if found.hexdigest() != expected:
        raise ImageError(
            f"{image} is corrupt: its MD5 digest is {found.hexdigest()}, expected {expected}. "
            f"{_RESTORE}"
        )
