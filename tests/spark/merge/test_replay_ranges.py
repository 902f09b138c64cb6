"""The same logs through the real lookup and the real writing, in ranges of a few hundred bytes."""

import io
from pathlib import Path
from random import Random

import pytest

from journal.model import TxId
from namenode_sim.edits.ops import Op
from namenode_sim.image.codecs import ZLIB_CODEC
from namenode_sim.image.reader import read_namespace
from namenode_sim.image.writer import write_namespace
from namenode_sim.namespace.namespace import Namespace
from spark.engine.outcome import InlineEngine
from spark.image.opened import open_image
from spark.merge.base import read_base
from spark.merge.delta import delta_of
from spark.merge.model import Looked
from spark.merge.plan.lookup import ImageIndex, look_up
from spark.merge.plan.rounds import plan_until_right
from spark.merge.replay import replay
from spark.merge.sparse import sparse_namespace
from spark.merge.trie import BaseTrie
from spark.merge.write.stages import apply_delta
from tests.namenode_sim.namespace.dump import differences
from tests.spark.merge.test_replay_random import DEEDS, MOVING_DEEDS
from tests.worlds.author import Author
from tests.worlds.files import info

Edits = list[tuple[TxId, Op]]


def merge_in_ranges(image: Path, edits: Edits, work: Path, size: int) -> bytes:
    engine = InlineEngine()
    with image.open("rb") as file:
        base = read_base(file)
    opened = open_image(engine, image, work, size=size)
    indexes: list[ImageIndex] = []

    def ask(trie: BaseTrie) -> Looked:
        looked, index = look_up(engine, opened, trie, work)
        indexes.append(index)
        return looked

    plan, looked = plan_until_right(base.facts, lambda: edits, ask)
    sparse = sparse_namespace(base, plan, looked)
    replay(sparse, edits)
    out = work / "new-image"
    apply_delta(engine, indexes[-1], delta_of(sparse), work, out)
    return out.read_bytes()


@pytest.mark.parametrize("codec", ["", ZLIB_CODEC], ids=["plain", "compressed"])
@pytest.mark.parametrize("seed", range(8))
def test_ranges_give_what_the_whole_namespace_gives(tmp_path: Path, seed: int, codec: str) -> None:
    author = Author(Random(seed), Namespace.empty("hdfs"))
    deeds = MOVING_DEEDS if seed % 2 else DEEDS
    for _ in range(author.random.choice((0, 60, 300))):
        author.step(deeds)
    image, work = tmp_path / "image", tmp_path / "work"
    work.mkdir()
    with image.open("wb") as file:
        sub_sections = author.random.choice((0, 3))
        write_namespace(author.namespace, file, info(), codec=codec, sub_sections=sub_sections)
    author.log.clear()
    for _ in range(author.random.choice((10, 100))):
        author.step(deeds)
    data = merge_in_ranges(image, author.log, work, author.random.choice((100, 1000, 100_000)))
    saved = io.BytesIO()
    write_namespace(author.namespace, saved, info())
    assert differences(read_namespace(io.BytesIO(data)), read_namespace(saved)) == []
