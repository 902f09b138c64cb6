"""What the planner and the sparse tree refuse, and how they say so."""

import io

import numpy as np
import pytest

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.values import Permission, RenameOption, StorageType
from namenode_sim.image.codecs import ZLIB_CODEC
from namenode_sim.image.container import ImageWriter
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.writer import write_namespace
from namenode_sim.namespace.errors import ApplyError, TxIdOutOfOrder
from spark.merge.base import read_base
from spark.merge.delta import delta_of
from spark.merge.errors import EditsDoNotBelong, Miss, NeedsWholeNamespace
from spark.merge.model import Looked
from spark.merge.plan.planner import plan_edits
from spark.merge.replay import replay
from spark.merge.sparse import sparse_namespace
from tests.namenode_sim.image.image_world import saved
from tests.spark.merge.memory import MemoryImage, merge_in_memory
from tests.spark.merge.script import Script
from tests.worlds.files import info


def _script() -> Script:
    script = Script()
    script.mkdirs("/a", "/a/full", "/b", "/empty")
    script.files("/a/f", "/a/full/f")
    script.image()
    return script


def test_an_edit_about_snapshots_is_for_one_process() -> None:
    script = _script()
    script.write(ops.AllowSnapshot("/a"))
    with pytest.raises(NeedsWholeNamespace, match=r"transaction \d+ .*AllowSnapshot"):
        merge_in_memory(script.data, script.edits)


@pytest.mark.parametrize(
    "op",
    [
        ops.SetQuota("/.reserved/raw/a", 5, 6),
        ops.SetQuotaByStorageType("/.reserved/.inodes/16386", StorageType.SSD, 7),
    ],
)
def test_a_quota_by_a_reserved_path_is_for_one_process(op: ops.Op) -> None:
    script = _script()
    script.write(op)
    with pytest.raises(NeedsWholeNamespace, match=r"transaction \d+ .*names /\.reserved"):
        merge_in_memory(script.data, script.edits)


def test_a_path_through_a_snapshottable_directory_is_for_one_process() -> None:
    script = _script()
    script.write(ops.AllowSnapshot("/a"))
    script.write(ops.CreateSnapshot("/a", "s"))
    script.image()
    image = MemoryImage.of(script.data)
    assert image.base.facts.snapshottable == {16386}
    script.files("/b/new")
    plan = plan_edits(script.edits, image.base.facts)
    replay(sparse_namespace(image.base, plan, image.look_up(plan.trie)), script.edits)
    script.delete("/a/full/f")
    plan = plan_edits(script.edits, image.base.facts)
    with pytest.raises(NeedsWholeNamespace, match="the edits touch /a, "):
        sparse_namespace(image.base, plan, image.look_up(plan.trie))


def test_an_open_file_in_a_snapshottable_directory_disturbs_nobody() -> None:
    script = _script()
    script.open("/a/open")
    script.write(ops.AllowSnapshot("/a"))
    script.image()
    script.files("/b/new")
    script.rename("/a", "/z")
    image = MemoryImage.of(script.data)
    for count, touched in ((len(script.edits), True), (len(script.edits) - 1, False)):
        edits = script.edits[:count]
        plan = plan_edits(edits, image.base.facts)
        looked = image.look_up(plan.trie)
        if touched:
            with pytest.raises(NeedsWholeNamespace, match="touch /a, "):
                sparse_namespace(image.base, plan, looked)
        else:
            sparse = sparse_namespace(image.base, plan, looked)
            replay(sparse, edits)
            assert b"/a/open" in delta_of(sparse).sections["FILES_UNDERCONSTRUCTION"]


def test_an_open_file_that_is_elsewhere_is_for_one_process() -> None:
    script = _script()
    script.open("/a/open")
    data = saved(script.namespace).replace(b"/a/open", b"/a/gone", 1)
    assert data != saved(script.namespace)
    with pytest.raises(NeedsWholeNamespace, match="open for writing at /a/gone"):
        merge_in_memory(data, [])


def test_a_missing_edit_is_told() -> None:
    script = _script()
    script.delete("/a/f", "/a/full/f")
    with pytest.raises(TxIdOutOfOrder):
        merge_in_memory(script.data, script.edits[1:])


def test_edits_that_the_image_has_are_passed_over() -> None:
    script = Script()
    script.mkdirs("/a", "/b")
    before = list(script.edits)
    script.image()
    script.delete("/a")
    merged = merge_in_memory(script.data, [*before, *script.edits])
    assert merged.plan.count == 1
    assert len(merged.plan.trie) == 2


def test_an_edit_that_contradicts_the_image_names_its_transaction() -> None:
    script = _script()
    txid = TxId(script.namespace.last_applied + 1)
    with pytest.raises(ApplyError, match=f"transaction {txid}, SetPermissions: /a/no"):
        merge_in_memory(script.data, [(txid, ops.SetPermissions("/a/no", 0o600))])


def test_an_inode_id_that_the_image_has_given_out_is_told() -> None:
    script = _script()
    edit = ops.Mkdir(16390, "/a/new", 1, 1, Permission("u", "g", 0o755))
    with pytest.raises(EditsDoNotBelong, match="creates inode 16390"):
        merge_in_memory(script.data, [(TxId(script.namespace.last_applied + 1), edit)])


def test_a_question_that_was_not_asked_is_a_miss_and_no_answer() -> None:
    script = _script()
    script.delete("/a/f")
    image = MemoryImage.of(script.data)
    plan = plan_edits(script.edits, image.base.facts)
    sparse = sparse_namespace(image.base, plan, image.look_up(plan.trie))
    with pytest.raises(Miss, match="b'full' in directory 16386"):
        sparse.namespace.apply(script.edits[0][0], ops.Delete("/a/full", 5))


def test_what_was_only_walked_through_may_not_change() -> None:
    script = _script()
    script.delete("/a/full/f")
    image = MemoryImage.of(script.data)
    plan = plan_edits(script.edits, image.base.facts)
    sparse = sparse_namespace(image.base, plan, image.look_up(plan.trie))
    sparse.namespace.tree.node("/a").mode = 0o700
    with pytest.raises(Miss):
        replay(sparse, script.edits)


def test_a_directory_replaced_by_a_rename_is_to_be_found_empty() -> None:
    script = _script()
    script.rename("/b", "/empty", overwrite=True)
    merged = script.check()
    assert merged.delta.must_be_empty.tolist() == [merged.image.entries[16385][2]]
    txid = TxId(script.namespace.last_applied + 1)
    contradiction = ops.Rename("/empty", "/a/full", 5, (RenameOption.OVERWRITE,))
    with pytest.raises(AssertionError, match="was taken for empty"):
        merge_in_memory(script.data, [*script.edits, (txid, contradiction)])


def test_answers_that_contradict_each_other_are_refused() -> None:
    script = _script()
    script.delete("/a/f", "/b")
    image = MemoryImage.of(script.data)
    plan = plan_edits(script.edits, image.base.facts)
    looked = image.look_up(plan.trie)
    twice = looked.ids.copy()
    twice[-1] = twice[0]
    for ids, messages in (
        (looked.ids[:-1], looked.messages),
        (twice, looked.messages),
        (looked.ids, {16385: looked.messages[16385]}),
        (np.roll(looked.ids, 1), looked.messages),
    ):
        with pytest.raises(EditsDoNotBelong):
            sparse_namespace(image.base, plan, Looked(ids, messages))


@pytest.mark.parametrize("codec", ["", ZLIB_CODEC])
def test_small_sections_are_read_from_images_of_all_kinds(codec: str) -> None:
    script = _script()
    file = io.BytesIO()
    write_namespace(script.namespace, file, info(), codec=codec, sub_sections=3)
    base = read_base(file)
    assert base.facts == read_base(io.BytesIO(script.data)).facts
    assert base.facts.inodes == len(script.namespace.tree.inodes)
    assert base.facts.last_applied == script.namespace.last_applied


def test_a_malformed_small_section_is_named() -> None:
    file = io.BytesIO()
    writer = ImageWriter(file, layout=-65, codec="")
    for name, content in (("NS_INFO", b"\x02\xff\xff"), ("STRING_TABLE", b"\0"), ("INODE", b"\0")):
        with writer.section(name) as write:
            write(content)
    writer.finish()
    with pytest.raises(ImageError, match="section NS_INFO: malformed"):
        read_base(file)


def test_fields_of_a_newer_hadoop_stay() -> None:
    """Keep them on inodes that change, are only looked at, or are not asked about."""
    script = _script()
    image = MemoryImage.of(script.data)
    unknown = b"\x9a\x06\x03new"  # field 99
    for number, raw in image.messages.items():
        message = pb.INode.FromString(raw)
        body = message.file if message.type == pb.INode.FILE else message.directory
        body.MergeFromString(unknown)
        image.messages[number] = message.SerializeToString() + unknown
    plan = plan_edits([], image.base.facts)
    sparse = sparse_namespace(image.base, plan, image.look_up(plan.trie))
    script.data = image.apply(delta_of(sparse))
    script.write(ops.SetPermissions("/a/f", 0o600))
    script.write(ops.SetReplication("/a", 1))
    assert len(script.check().delta.updated) == 1
