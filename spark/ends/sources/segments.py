"""Finalized segments as files: fetched from JournalNodes, or found here from an earlier time.

Every byte is believed for two reasons only: each edit's checksum and number, and the digest that a
majority of the nodes lists for the whole segment.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from ha.daemon.in_thread import run_in_thread
from journal.errors import StorageFailed, Unavailable
from journal.frame import file_header
from journal.model import NodeName, Segment
from journal.reader.frame_stream import Chunk, FrameReader
from journal.reader.manifest import Redundant
from journal.reader.reader import JournalReader
from spark.ends.sources.model import SourceError

log = structlog.get_logger()

PART_SUFFIX: Final = ".part"
_CHUNK_BYTES: Final = 1024 * 1024


async def fetch_segment(reader: JournalReader, part: Redundant, folder: Path) -> Path:
    """Have a segment in ``folder``, from one node after the other.

    Raises:
        SourceError: if no node gives it whole; names the segment and what each node did.
        QuorumLost: if no majority answers when the nodes are asked who else has it.
        OSError: if local storage refuses.
    """
    segment, failures = part.segment, dict[NodeName, str]()
    target = folder / segment.name()
    sources: Sequence[NodeName] = part.sources
    while sources:
        for node in sources:
            try:
                await _copy(reader, node, segment, target)
            except (Unavailable, StorageFailed) as failure:
                failures[node] = str(failure)
                log.warning(
                    "segment.source_failed", node=node, segment=target.name, why=str(failure)
                )
            else:
                return target
        # The majority that answered first may be just those whose copies are bad.
        sources = [node for node in await reader.holders(segment) if node not in failures]
    told = "; ".join(f"{node}: {why}" for node, why in failures.items())
    raise SourceError(
        f"{target.name}: transactions {segment.first} to {segment.last} cannot be had from any "
        f"JournalNode: {told}. Mend or restart one that has them (nnha journal verify tells)"
    )


async def _copy(reader: JournalReader, node: NodeName, segment: Segment, target: Path) -> None:
    """Write one node's copy, under its name only once it is whole.

    Raises:
        Unavailable, StorageFailed: as the node fails, or gives other bytes than a majority lists.
    """
    beside = target.with_name(target.name + PART_SUFFIX)
    digest = hashlib.sha256()
    try:
        with beside.open("wb") as file:
            async with aclosing(reader.copy_of(node, segment)) as chunks:
                async for chunk in chunks:
                    if file.tell() == 0:
                        file.write(file_header(chunk.layout_version))
                    await run_in_thread(partial(_add, file.write, digest.update, chunk))
        if segment.digest and digest.digest() != segment.digest:
            raise StorageFailed(
                f"its copy of {segment.name()} has the digest {digest.hexdigest()[:16]}, and "
                f"{segment.digest.hex()[:16]} is listed"
            )
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


_Take = Callable[[bytes], object]


def _add(write: _Take, update: _Take, chunk: Chunk) -> None:
    write(chunk.records)
    update(chunk.records)


def why_unsound(path: Path, segment: Segment) -> str:
    """Return why a file is not that segment, whole and unchanged; empty if it is."""
    try:
        return _why_unsound(path, segment)
    except OSError as failure:
        return f"{path} cannot be read: {failure}"


def _why_unsound(path: Path, segment: Segment) -> str:
    frames = FrameReader(segment.first, wanted=segment.first, last=segment.last)
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while not frames.complete and (data := file.read(_CHUNK_BYTES)):
            try:
                chunk = frames.feed(data)
            except ValueError as damage:
                return f"{path}: {damage}"
            if chunk is not None:
                digest.update(chunk.records)
    if not frames.complete:
        return f"{path} ends before transaction {frames.next_txid}"
    if segment.digest and digest.digest() != segment.digest:
        return f"{path} has the digest {digest.hexdigest()[:16]}, not {segment.digest.hex()[:16]}"
    return ""
