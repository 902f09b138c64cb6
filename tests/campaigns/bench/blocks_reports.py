"""Full reports at a NameNode: the first ones, which end safe mode, and unchanged ones."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from datanode.model import StorageId
from deploy.local.cluster.errors import LocalClusterError
from tests.campaigns.bench.blocks_image import A_FILE, DATANODES, STORAGES, Image, datanode_of
from tests.campaigns.bench.blocks_sides import Side
from tests.campaigns.bench.file_info_probe import asking
from tests.campaigns.bench.namenode_calls import connected, in_safe_mode, until
from tests.campaigns.bench.played_datanodes import HEARTBEAT_SECONDS, PlayedDataNode, living
from tests.campaigns.bench.report import Row, unmeasured

_LEFT: Final = "first reports: until safe mode is left"
_LONGEST: Final = "first reports: longest getFileInfo meanwhile"
_SAME: Final = "full report, unchanged, whole RPC"
SAFE_MODE_BAR: Final = 60.0
STALL_BAR: Final = 0.3
SAME_BAR: Final = 1.5
LEAVE_SECONDS: Final = 300.0
_WARM_UPS: Final = 3
Told = Sequence[tuple[StorageId, int, bytes]]


@dataclass(slots=True)
class Reported:
    """What the reports took at one NameNode, in seconds."""

    until_left: float = 0.0
    longest_file_info: float = 0.0
    file_infos: int = 0
    cpu: float = 0.0
    """Of the NameNode, until safe mode was left."""
    same: list[float] = field(default_factory=list)


def told_by(reports: Sequence[tuple[int, bytes]]) -> list[Told]:
    told: list[list[tuple[StorageId, int, bytes]]] = [[] for _ in range(DATANODES)]
    for storage, (count, rows) in enumerate(reports):
        mine = told[datanode_of(storage)]
        name = StorageId(f"DS-played-{datanode_of(storage)}-{len(mine)}")
        mine.append((name, count, rows))
    return [tuple(one) for one in told]


async def measured(sides: Sequence[Side], image: Image, rounds: int) -> tuple[Reported, Reported]:
    """Both sorts of reports at each NameNode; it starts from the image.

    Raises:
        LocalClusterError: if a NameNode does not do what is expected.
    """
    told, found = told_by(image.reports()), [Reported() for _ in sides]
    async with AsyncExitStack() as running:
        nodes = []
        for side, one in zip(sides, found, strict=True):
            await asyncio.to_thread(side.restart_from, image.folder)
            nodes.append([await _registered(side, *each) for each in enumerate(told)])
            await _first(side, nodes[-1], told, one)
            await running.enter_async_context(living(nodes[-1]))
        for turn in range(_WARM_UPS + rounds):
            number = turn % DATANODES
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                began = time.monotonic()
                await nodes[which][number].report(told[number][:1])
                if turn >= _WARM_UPS:
                    found[which].same.append(time.monotonic() - began)
    return found[0], found[1]


async def _registered(side: Side, number: int, told: Told) -> PlayedDataNode:
    return await PlayedDataNode.registered(side.address, number, len(told))


async def _first(
    side: Side, nodes: Sequence[PlayedDataNode], told: Sequence[Told], found: Reported
) -> None:
    connection = await connected(side.address)
    if not await in_safe_mode(connection):
        raise LocalClusterError(f"{side.whose} NameNode has blocks that nobody has reported, and "
                                "is not in safe mode")  # fmt: skip

    async def left() -> bool:
        return not await in_safe_mode(connection)

    with asking(side.address, A_FILE) as probe:
        used, began = side.cpu_seconds(), time.monotonic()
        await asyncio.gather(
            *(_report(*each) for each in zip(nodes, told, strict=True)),
            until(left, f"{side.whose} NameNode to leave safe mode", LEAVE_SECONDS),
        )
        found.until_left = time.monotonic() - began
        found.cpu = side.cpu_seconds() - used
    await connection.close()
    found.longest_file_info, found.file_infos = probe.longest_seconds, probe.calls


async def _report(node: PlayedDataNode, told: Told) -> None:
    """Report once the NameNode gives a lease, as a DataNode does at its start."""
    while not (lease := await node.heartbeat(wants_lease=True)):
        await asyncio.sleep(HEARTBEAT_SECONDS)
    await node.report(told, lease)


def report_rows(ours: Reported, theirs: Reported, image: Image) -> list[Row]:
    blocks = len(image.blocks)
    rows = blocks * 3 // STORAGES
    same, beside = statistics.median(ours.same), statistics.median(theirs.same)
    ratio = same / beside
    of = f"{blocks:,} blocks x 3 from {DATANODES} DataNodes"
    return [
        Row(_LEFT, ours.until_left, "s",
            f"<= {SAFE_MODE_BAR:g}", ours.until_left <= SAFE_MODE_BAR,
            f"{of}; CPU {ours.cpu:.1f} s; Hadoop's {theirs.until_left:.2f} s, "
            f"CPU {theirs.cpu:.1f} s"),
        Row(_LONGEST, ours.longest_file_info, "s",
            f"<= {STALL_BAR:g}", ours.longest_file_info <= STALL_BAR,
            f"of {ours.file_infos:,} calls; Hadoop's {theirs.longest_file_info:.3f} s of "
            f"{theirs.file_infos:,}"),
        Row(_SAME, ratio, "x Hadoop's time", f"<= {SAME_BAR:g}",
            ratio <= SAME_BAR,
            f"{rows:,} rows: {same * 1000:.1f} ms, Hadoop's {beside * 1000:.1f} ms; medians of "
            f"{len(ours.same)} in turn"),
    ]  # fmt: skip


def unmeasured_rows(why: str) -> list[Row]:
    return [
        unmeasured(_LEFT, "s", f"<= {SAFE_MODE_BAR:g}", why),
        unmeasured(_LONGEST, "s", f"<= {STALL_BAR:g}", why),
        unmeasured(_SAME, "x Hadoop's time", f"<= {SAME_BAR:g}", why),
    ]
