"""Fetch an image from another NameNode's /imagetransfer, and believe only its digest."""

import hashlib
import os
import re
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final
from urllib.parse import urlencode

import structlog

from ha.conf.topology import HostPort
from ha.daemon.http.negotiate import NotProven, prove_ourselves
from ha.daemon.in_thread import run_in_thread
from ha.daemon.lazy_import import load_late
from ha.security.caller import Role
from ha.security.own_tls import context_for, scheme
from hadoop.durable import rename_durably
from journal.model import NamespaceInfo, TxId
from namenode_sim.image.files import image_name, write_digest
from namenode_sim.transfer.image_request import PATH

if TYPE_CHECKING:
    import aiohttp

log = structlog.get_logger()

CONNECT_SECONDS: Final = 20.0
_CHUNK_BYTES: Final = 1024 * 1024
_DIGEST = re.compile(r"[0-9a-f]{32}")


class FetchFailed(Exception):
    """The image did not come, or not as it was sent; nothing of it was kept."""


async def fetch_image(
    source: HostPort,
    folder: Path,
    txid: TxId,
    namespace: NamespaceInfo,
    *,
    stall_seconds: float,
    bootstrap: bool = True,
) -> Path:
    """Fetch ``fsimage_<txid>`` into ``folder``; durable with its digest when this returns.

    Args:
        source: the HTTP address of a NameNode that has it.
        folder: an existing folder.
        txid: which image.
        namespace: whose image; the source refuses another file system's.
        stall_seconds: how long nothing may come before we give up.
        bootstrap: whether a NameNode waits for it; else the source sends at a checkpoint's rate.

    Raises:
        FetchFailed: if it cannot be had; says why.
        OSError: if our own disk refuses.
    """
    # Loaded here: a NameNode fetches an image once in its life, or never.
    await load_late("aiohttp")
    import aiohttp

    query = {
        "getimage": "1",
        "txid": str(txid),
        "imageFile": "IMAGE",
        "storageInfo": namespace.storage_info(),
        "bootstrapstandby": "true" if bootstrap else "false",
    }
    url = f"{scheme()}://{source}{PATH}?{urlencode(query)}"
    timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=stall_seconds)
    beside = folder / f"fsimage.ckpt_{txid:019d}"
    connector = aiohttp.TCPConnector(ssl=context_for(Role.NAMENODE) or True)
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector,
                timeout=timeout,
                auto_decompress=False,
                middlewares=(prove_ourselves,),
            ) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            digest = await _receive(response, beside, image_name(txid))
    except (aiohttp.ClientError, NotProven, TimeoutError) as failure:
        raise FetchFailed(f"{url}: {str(failure) or type(failure).__name__}") from failure
    except FetchFailed as failure:
        raise FetchFailed(f"{url}: {failure}") from failure
    else:
        target = folder / image_name(txid)
        await run_in_thread(partial(_publish, beside, target, digest))
        return target
    finally:
        beside.unlink(missing_ok=True)


def _publish(beside: Path, target: Path, digest: str) -> None:
    write_digest(target, digest)
    rename_durably(beside, target)


async def _receive(response: "aiohttp.ClientResponse", path: Path, name: str) -> str:
    """Store the body; return its digest, if it is the one that was announced."""
    if response.status != 200:
        said = (await response.content.read(500)).decode("utf-8", "replace")
        raise FetchFailed(f"it answered {response.status} {response.reason}: {said}")
    size, digest = response.content_length, response.headers.get("X-MD5-Digest", "")
    sent_name = response.headers.get("X-Image-Edits-Name", name)
    if sent_name != name:
        raise FetchFailed(f"it sent {sent_name[:80]!r}, not {name}")
    if size is None or not _DIGEST.fullmatch(digest):
        raise FetchFailed(
            f"it announced {size} bytes and the digest {digest[:40]!r}; without both nobody can "
            "tell whether the image is whole"
        )
    free = shutil.disk_usage(path.parent).free
    if size > free:
        raise FetchFailed(f"it is {size} bytes, and {path.parent} has {free} left")
    found = hashlib.md5(usedforsecurity=False)
    with path.open("wb") as file:
        received = 0
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            received += len(chunk)
            if received > size:
                break
            found.update(chunk)
            await run_in_thread(partial(file.write, chunk))
        await run_in_thread(partial(_sync, file))
    if received != size or found.hexdigest() != digest:
        raise FetchFailed(
            f"it came damaged: {received} bytes with digest {found.hexdigest()}, announced were "
            f"{size} with {digest}"
        )
    log.info("image.fetched", name=name, bytes=size)
    return digest


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
