"""GET /imagetransfer: hands an image to another NameNode.

See docs/reference/namenode.md#image-transfer.
"""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import structlog
from aiohttp import web

from ha.daemon.in_thread import run_in_thread
from ha.record import dataclass
from journal.model import NamespaceInfo
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import read_digest
from namenode_sim.transfer.image_request import IMAGE_KINDS, PATH

log = structlog.get_logger()

_CHUNK_BYTES: Final = 256 * 1024
_FILE = re.compile(r"(fsimage_(?:rollback_)?)(\d+)")


@dataclass(frozen=True, slots=True)
class TransferLimits:
    """Bytes a second for a checkpoint and for a bootstrap; 0 is no limit.  Hadoop's defaults."""

    bytes_per_second: int = 50 * 1024 * 1024
    bootstrap_bytes_per_second: int = 0


class ImageServer:
    """Serves the finished images of some directories, and nothing else in them."""

    def __init__(
        self,
        namespace_info: NamespaceInfo,
        directories: Callable[[], Sequence[Path]],
        limits: TransferLimits | None = None,
    ) -> None:
        self._info = namespace_info
        self._directories = directories
        self._limits = limits or TransferLimits()

    def routes(self) -> Sequence[web.RouteDef]:
        return (web.get(PATH, self._get),)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        claimed = query.get("storageInfo")
        if claimed is not None and claimed != self._info.storage_info():
            log.warning("image.refused", asked_by=request.remote, claimed=claimed[:200])
            raise web.HTTPForbidden(
                text=f"this NameNode belongs to {self._info.storage_info()}, the request to "
                f"{claimed[:200]}"
            )
        if query.get("getimage") != "1":
            # Edits are the JournalNodes' to serve; the alias map is for provided storage.
            raise web.HTTPGone(text="only getimage=1 is served here")
        path = await asyncio.to_thread(
            self._find, query.get("txid", ""), query.get("imageFile", "IMAGE")
        )
        bootstrap = query.get("bootstrapstandby") == "true"
        limits = self._limits
        rate = limits.bootstrap_bytes_per_second if bootstrap else limits.bytes_per_second
        try:
            digest = await asyncio.to_thread(read_digest, path)
            file = await run_in_thread(lambda: path.open("rb"), lambda opened: opened.close())
        except (OSError, ImageError) as problem:
            raise web.HTTPGone(text=str(problem)) from problem
        try:
            return await _stream(request, file, path.name, digest, rate)
        finally:
            await asyncio.to_thread(file.close)

    def _find(self, txid: str, kind: str) -> Path:
        prefix = IMAGE_KINDS.get(kind)
        if prefix is None:
            raise web.HTTPGone(text=f"there is no image of the kind {kind[:40]!r}")
        found: dict[int, Path] = {}
        for directory in self._directories():
            for path in _list_files(directory / "current"):
                match = _FILE.fullmatch(path.name)
                if match is not None and match[1] == prefix:
                    found.setdefault(int(match[2]), path)
        if txid == "latest" and found:
            return found[max(found)]
        number = int(txid) if txid.isascii() and txid.isdecimal() and len(txid) <= 19 else -1
        if number not in found:
            raise web.HTTPGone(text=f"there is no {prefix}{txid[:40]}; there are {sorted(found)}")
        return found[number]


def _list_files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []  # a directory that has just failed; the others have the same images


async def _stream(
    request: web.Request, file: BinaryIO, name: str, digest: str, bytes_per_second: int
) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f"attachment; filename={name}",
            "X-Image-Edits-Name": name,
            "X-MD5-Digest": digest,
        }
    )
    size = await asyncio.to_thread(file.seek, 0, 2)
    file.seek(0)
    response.content_length = size
    await response.prepare(request)
    began, sent = time.monotonic(), 0
    # Small pieces under a low limit, so that the network is never busy for long at a time.
    piece = min(_CHUNK_BYTES, max(bytes_per_second // 8, 512)) if bytes_per_second else _CHUNK_BYTES
    while sent < size:
        if bytes_per_second:
            await asyncio.sleep(sent / bytes_per_second - (time.monotonic() - began))
        chunk = await asyncio.to_thread(file.read, min(piece, size - sent))
        if not chunk:
            log.error("image.short", file=name, missing=size - sent)
            request.protocol.force_close()
            return response
        await response.write(chunk)
        sent += len(chunk)
    await response.write_eof()
    seconds = round(time.monotonic() - began, 3)
    log.info("image.served", file=name, bytes=size, seconds=seconds, asked_by=request.remote)
    return response
