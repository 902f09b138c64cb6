"""metaSave: what the file says of blocks and DataNodes, and where it may lie."""

import asyncio
from pathlib import Path

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, IO_EXCEPTION
from namenode_sim.blocks.needed import Priority
from namenode_sim.process import admin_service
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import serve
from tests.namenode_sim.client_protocol.recovering_datanodes import without_replicas


async def test_the_file_has_blocks_without_replicas_orders_and_datanodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_LOG_DIR", str(tmp_path))
    served = datanodes_in_memory.with_datanodes(serve())
    gone, few = await datanodes_in_memory.written(served, "/f", 10, 20)
    without_replicas(served, gone, "d1", "d2", "d3")
    without_replicas(served, few, "d2", "d3")
    blocks = served.cluster.blocks
    for block, priority in ((gone, Priority.MISSING), (few, Priority.HIGHEST)):
        slot = blocks.map.find(block.blockId)
        assert slot is not None
        blocks.needed.put(slot, priority)
    await served.call("metaSave", filename="meta.txt")
    lines = (tmp_path / "meta.txt").read_text().splitlines()
    assert lines[:3] == [
        "2 files and directories, 2 blocks = 4 total filesystem objects",
        "Live Datanodes: 3",
        "Dead Datanodes: 0",
    ]
    text = "\n".join(lines)
    waiting = lines[lines.index("Metasave: Blocks waiting for reconstruction: 1") + 1]
    assert waiting.startswith(f"/f: blk_{few.blockId}_{few.generationStamp} (replicas: l: 1 c: 0)")
    missing = lines[lines.index("Metasave: Blocks currently missing: 1") + 1]
    assert missing == (
        f"/f: blk_{gone.blockId}_{gone.generationStamp} MISSING (replicas: l: 0 c: 0)"
    )
    assert "Mis-replicated blocks that have been postponed:" in text
    assert "Metasave: Blocks 0 waiting deletion from 0 storages." in text
    assert len(lines[lines.index("Metasave: Number of datanodes: 3") + 1 :]) == 3
    assert "/default-rack NORMAL capacity: " in lines[-1]


async def test_others_are_served_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of DataNodes and a hundred blocks; two blocks and a storage go at once."""
    monkeypatch.setenv("HADOOP_LOG_DIR", str(tmp_path))
    monkeypatch.setattr(admin_service, "LINES_AT_ONCE", 5)
    served = datanodes_in_memory.with_datanodes(serve())
    blocks = served.cluster.blocks
    first, second = await datanodes_in_memory.written(served, "/f", 10, 20)
    for block in (first, second):
        slot = blocks.map.find(block.blockId)
        assert slot is not None
        blocks.needed.put(slot, Priority.MISSING)
        blocks.rechecks.postpone(slot)
    saving = asyncio.create_task(served.call("metaSave", filename="meta.txt"))
    await asyncio.sleep(0)
    await served.call("delete", src="/f", recursive=False)
    node = served.cluster.nodes["d1"]
    served.cluster.remove_storage(node, next(iter(node.storages.values())))
    await saving
    text = (tmp_path / "meta.txt").read_text()
    assert "Metasave: Blocks currently missing: 2" in text
    assert "Mis-replicated blocks that have been postponed:\nMetasave" in text
    assert text.splitlines()[-1].startswith("10.")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/x", "a/b", "a\0b"])
async def test_a_name_that_leads_elsewhere_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_LOG_DIR", str(tmp_path / "logs"))
    served = serve()
    with pytest.raises(RemoteFault, match="is no name of a file in the log directory") as refused:
        await served.call("metaSave", filename=name)
    assert refused.value.java_class == IO_EXCEPTION
    assert not list(tmp_path.iterdir())


async def test_others_and_places_that_are_not_there_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_LOG_DIR", str(tmp_path / "none"))
    served = serve()
    with pytest.raises(RemoteFault) as refused:
        await served.call("metaSave", filename="x", user="alice")
    assert refused.value.java_class == ACCESS_CONTROL
    with pytest.raises(RemoteFault, match="none/x was not written"):
        await served.call("metaSave", filename="x")
    monkeypatch.delenv("HADOOP_LOG_DIR")
    with pytest.raises(RemoteFault, match="start the NameNode with HADOOP_LOG_DIR"):
        await served.call("metaSave", filename="x")
    monkeypatch.setenv("LOGS_DIRECTORY", str(tmp_path))
    await served.call("metaSave", filename="x")
    assert (tmp_path / "x").is_file()
