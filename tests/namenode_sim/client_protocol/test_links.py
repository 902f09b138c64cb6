"""Symbolic links, which only edits of an older NameNode make: the client follows them."""

import pytest

from ha.rpc.errors import RemoteFault
from namenode_sim.edits.ops import Symlink
from namenode_sim.edits.values import Permission
from namenode_sim.namespace.inode import INodeSymlink
from namenode_sim.proto import client_namenode_pb2 as calls
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, prepared

UNRESOLVED = "org.apache.hadoop.hdfs.protocol.UnresolvedPathException"
LINKS = {"/link": "/gone", "/relative": "gone", "/deep": "/d/gone", "/d/f": "g"}


async def linked() -> Served:
    """Where there are links beside what ``prepared`` has."""
    served = await prepared()
    for path, target in LINKS.items():
        inode_id = served.namespace.counters.last_inode_id + 1
        op = Symlink(inode_id, path, target, 1, 1, Permission("alice", "staff", 0o777))
        served.namespace.apply(served.log.append(op), op)
    return served


FOLLOWED: dict[str, tuple[str, Fields, str]] = {
    "itself": ("getFileInfo", {"src": "/link"}, "/gone"),
    "what is below": ("getFileInfo", {"src": "/link/a/b"}, "/gone/a/b"),
    "a relative one": ("getFileInfo", {"src": "/d/f"}, "/d/g"),
    "a relative one in the root": ("getFileInfo", {"src": "/relative/a"}, "/gone/a"),
    "a new directory": (
        "mkdirs", {"src": "/link", "masked": {"perm": 0o755}, "createParent": True}, "/gone",
    ),
    "a new directory below": (
        "mkdirs", {"src": "/link/a", "masked": {"perm": 0o755}, "createParent": True}, "/gone/a",
    ),
    "a change": ("setPermission", {"src": "/link", "permission": {"perm": 0}}, "/gone"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "fields", "leads_to"), FOLLOWED.values(), ids=FOLLOWED.keys())
async def test_the_client_is_told_where_a_link_leads(
    method: str, fields: Fields, leads_to: str
) -> None:
    served = await linked()
    with pytest.raises(RemoteFault) as refusal:
        await served.call(method, **fields)
    assert (refusal.value.java_class, refusal.value.message) == (UNRESOLVED, leads_to)


async def test_a_link_is_looked_at_and_deleted_as_itself() -> None:
    served = await linked()
    answer = await served.call("getLinkTarget", path="/link")
    assert answer == calls.GetLinkTargetResponseProto(targetPath="/gone")
    deleted = await served.call("delete", src="/link", recursive=False)
    assert deleted == calls.DeleteResponseProto(result=True)
    assert served.namespace.tree.find("/link") is None


async def test_a_link_moves_as_itself() -> None:
    served = await linked()
    await served.call("rename", src="/link", dst="/d/e")
    link = served.namespace.tree.node("/d/e/link")
    assert isinstance(link, INodeSymlink)
    assert link.target == b"/gone"
