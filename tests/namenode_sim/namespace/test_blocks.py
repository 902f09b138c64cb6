"""Whether files have blocks is known without a look at all of them, and never wrong."""

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import NO_RPC_IDS, Block
from namenode_sim.namespace.blocks import BlockPresence
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.state import FIRST_BLOCK_ID
from tests.namenode_sim.namespace.given_edits import add, after, close, mkdir

BLOCK = Block(FIRST_BLOCK_ID + 1, 100, 1001)
ALLOCATED: tuple[Op, ...] = (ops.AllocateBlockId(BLOCK.block_id), ops.SetGenstampV2(1001))


def apply(namespace: Namespace, *given: Op) -> None:
    for op in given:
        namespace.apply(TxId(namespace.last_applied + 1), op)


def test_directories_and_empty_files_have_none() -> None:
    namespace = after(mkdir("/d"), add("/d/empty"), close("/d/empty"))
    assert not BlockPresence(namespace).any()


def test_a_block_is_found_also_when_its_id_was_given_out_before() -> None:
    namespace = after(add("/f"))
    blocks = BlockPresence(namespace)
    assert not blocks.any()
    apply(namespace, *ALLOCATED)
    assert not blocks.any()
    apply(namespace, ops.AddBlock("/f", None, BLOCK))
    assert blocks.any()


def test_the_last_block_goes_with_its_file() -> None:
    namespace = after(add("/f"), add("/g"), *ALLOCATED)
    blocks = BlockPresence(namespace)
    apply(namespace, ops.AddBlock("/f", None, BLOCK))
    assert blocks.any()
    apply(namespace, close("/f", BLOCK), ops.Delete("/f", 30, NO_RPC_IDS))
    assert not blocks.any()
    assert not blocks.any()
    apply(namespace, ops.AddBlock("/g", None, BLOCK))
    assert blocks.any()
