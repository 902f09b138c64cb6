"""What the tests of recovery share: an operator, damaged directories and journals."""

from collections.abc import Mapping
from pathlib import Path

from journal.model import TxId
from namenode_sim.edits.ops import Op, StartLogSegment
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.startup.recover import Recovery, recover
from namenode_sim.storage.storage import open_name_dirs
from tests.namenode_sim.namespace.dump import dump_tree
from tests.namenode_sim.startup.startup_world import World, mkdir
from tests.worlds.files import frames, info, write_segment
from tests.worlds.name_dirs import format_name_dirs

SEGMENT: tuple[Op, ...] = (StartLogSegment(), mkdir("/a"), mkdir("/b"), mkdir("/c"))


class Operator:
    """Answers in turn, and remembers what he was asked."""

    def __init__(self, answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def choose(self, trouble: str, choices: Mapping[str, str]) -> str:
        assert list(choices) == ["c", "s", "q", "a"]
        self.asked.append(trouble)
        return self.answers.pop(0)


async def run(at: World, operator: Operator) -> str:
    return await recover(at.conf(), at.place(), Recovery(operator.choose))


def broken(directory: Path, *ops: Op) -> Path:
    """Make a directory whose first segment has a damaged byte in its second edit."""
    format_name_dirs([directory], info(), Namespace.empty("hdfs"))
    path = write_segment(directory / "current", 1, ops or SEGMENT)
    write_segment(directory / "current", 5, (StartLogSegment(), mkdir("/d")))
    (directory / "current" / "seen_txid").write_text("5\n")
    if not ops:
        flip(path, 8 + 17 + 20)
    return path


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def loaded(directory: Path) -> tuple[list[str], int]:
    storage = open_name_dirs([directory])
    namespace = storage.load()
    storage.close()
    return [path for path, _ in dump_tree(namespace.tree.root)], namespace.last_applied


async def journal_with_a_damaged_segment(at: World, tmp_path: Path, first: int) -> None:
    """Write segments 1-2, 3-4 and 5-6, one of which has a damaged second edit on all nodes."""
    format_name_dirs([at.name_dir], info(), Namespace.empty("hdfs"))
    writer = at.writer(info())
    await writer.format()
    await writer.become_writer()
    for start, name in ((1, "/a"), (3, "/b"), (5, "/c")):
        await writer.start_segment(TxId(start))
        await writer.write(TxId(start), 2, frames(start, (mkdir(name), mkdir(f"{name}2"))))
        await writer.finalize_segment(TxId(start + 1))
    await writer.settle(timeout_seconds=30)
    await writer.close()
    for i in range(3):
        folder = tmp_path / "journal" / f"jn{i}" / "ns1" / "current"
        flip(folder / f"edits_{first:019d}-{first + 1:019d}", -10)
