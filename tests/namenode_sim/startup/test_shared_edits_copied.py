"""What of the local edits comes into the journal, in which parts, and what never does."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from ha.daemon.process import ExitWith
from journal.model import NamespaceInfo
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import Op, SetXAttr, StartLogSegment
from namenode_sim.edits.values import XAttr, XAttrNamespace
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.startup.shared_edits import BATCH_BYTES, initialize_shared_edits
from tests.journal.node.process import until
from tests.journal.writer.proxy import Fate, behind_proxies
from tests.namenode_sim.startup import startup_world
from tests.worlds.files import info, write_segment
from tests.worlds.name_dirs import format_name_dirs

NO_WAIT = "nnha.read-lease.duration=1ms"
"""There is no older writer whose read lease must run out before the first segment."""
LAST = len(startup_world.ROLLED) + len(startup_world.OPEN)


async def initialize(at: startup_world.World, *overrides: str) -> int:
    keys = (NO_WAIT, *overrides)
    done = await initialize_shared_edits(at.conf(*keys), at.place(*keys), startup_world.NEVER_ASK)
    return done.last_txid


def large(path: str, share: float) -> SetXAttr:
    value = b"x" * int(BATCH_BYTES * share)
    return SetXAttr(path, (XAttr(XAttrNamespace.USER, "a", value),))


SIZES = {
    "one that takes more than a batch at the front": (1.5, 0.1),
    "one that takes more than a batch among small ones": (0.1, 1.5, 0.1),
    "some that together take more": (0.4, 0.4, 0.4),
}


@pytest.mark.parametrize("shares", SIZES.values(), ids=SIZES)
async def test_edits_of_any_size_arrive_in_order(
    at: startup_world.World, shares: tuple[float, ...]
) -> None:
    format_name_dirs([at.name_dir], info(), Namespace.empty("hdfs"))
    ops: list[Op] = [*(large("/", share) for share in shares), startup_world.mkdir("/end")]
    write_segment(at.name_dir / "current", 1, ops)
    assert await initialize(at) == len(ops)
    assert await at.journal_ops(info()) == list(enumerate(ops, start=1))


async def test_a_node_behind_the_majority_is_waited_for(
    at: startup_world.World, tmp_path: Path
) -> None:
    def slowly(_: int, method: str) -> Fate:
        return Fate.HOLD if method == "FinalizeLogSegment" else Fate.PASS

    startup_world.in_use(at.name_dir)
    stored = [tmp_path / "journal" / f"jn{i}" / "ns1" / "current" for i in range(3)]

    def closed(i: int) -> int:
        return len(list(stored[i].glob("edits_0*")))

    async with behind_proxies(at.nodes.addresses[2:]) as (slow,):
        slow.judge = slowly
        uri = ";".join(f"{host}:{port}" for host, port in [*at.nodes.addresses[:2], slow.address])
        copying = asyncio.create_task(
            initialize(at, f"dfs.namenode.shared.edits.dir=qjournal://{uri}/ns1")
        )
        await until(lambda: closed(0) == closed(1) == 2, "a majority has it all")
        await slow.held.wait()
        slow.opened.set()
        assert await copying == LAST
        assert closed(2) == 2


FOREIGN = {
    "another namespace id": replace(info(), namespace_id=99),
    "another cluster": replace(info(), cluster_id="CID-other"),
}


@pytest.mark.parametrize("theirs", FOREIGN.values(), ids=FOREIGN)
async def test_a_journal_of_another_file_system_stays_even_by_force(
    at: startup_world.World, theirs: NamespaceInfo
) -> None:
    startup_world.in_use(at.name_dir)
    writer = at.writer(theirs)
    await writer.format()
    await writer.close()
    with pytest.raises(ExitWith, match="belongs to another file system"):
        await initialize_shared_edits(at.conf(), at.place(), startup_world.FORCE)
    assert await at.journal_ops(theirs) == []


async def test_edits_without_frame_lengths_are_refused_before_anything_is_changed(
    at: startup_world.World,
) -> None:
    format_name_dirs([at.name_dir], info(), Namespace.empty("hdfs"))
    write_segment(
        at.name_dir / "current", 1, (StartLogSegment(), startup_world.mkdir("/a")), layout=-55
    )
    before = startup_world.snapshot(at.name_dir)
    with pytest.raises(EditsError, match="layout -55 has no frame lengths"):
        await initialize(at)
    assert startup_world.snapshot(at.name_dir) == before


HALF_WAY = {
    "while it is formatted": ("dfs.qjm.operations.timeout=1ns", "could not be formatted; some"),
    "before the first segment is closed": (
        "dfs.qjournal.finalize-segment.timeout.ms=1ns",
        f"of the edits 1 to {LAST} it holds none: it is not complete",
    ),
}


@pytest.mark.parametrize(("key", "told"), HALF_WAY.values(), ids=HALF_WAY)
async def test_a_failure_says_how_far_it_came(at: startup_world.World, key: str, told: str) -> None:
    startup_world.in_use(at.name_dir)
    with pytest.raises(ExitWith) as failure:
        await initialize(at, key)
    assert told in failure.value.message
    assert "Run the same command with --force" in failure.value.message
