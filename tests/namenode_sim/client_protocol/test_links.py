"""Symbolic links, which only edits of an older NameNode make: the client follows them."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import HdfsFileStatusProto
from namenode_sim.namespace.inode import INodeSymlink
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, linked

UNRESOLVED = "org.apache.hadoop.hdfs.protocol.UnresolvedPathException"

FOLLOWED: dict[str, tuple[str, Fields, str]] = {
    "itself": ("getFileInfo", {"src": "/link"}, "/gone"),
    "itself with locations": (
        "getLocatedFileInfo", {"src": "/link", "needBlockToken": False}, "/gone",
    ),
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


# A client that met a link on its way asks where the same path leads.
TARGETS = {
    "/link": "/gone",
    "/relative": "gone",
    "/link/a/b": "/gone/a/b",
    "/deep/a": "/d/gone/a",
    "/relative/a": "/gone/a",
}


@pytest.mark.parametrize(("path", "target"), TARGETS.items(), ids=TARGETS.keys())
async def test_a_path_to_or_through_a_link_has_a_target(path: str, target: str) -> None:
    served = await linked()
    answer = await served.call("getLinkTarget", path=path)
    assert answer == calls.GetLinkTargetResponseProto(targetPath=target)


NO_TARGET: dict[str, tuple[str, str, str]] = {
    "a file": ("/f", "java.io.IOException", "Path /f is not a symbolic link"),
    "a directory": ("/d", "java.io.IOException", "Path /d is not a symbolic link"),
    "nothing": ("/none", "java.io.FileNotFoundException", "File does not exist: /none"),
    "below a file": ("/f/a", "java.io.FileNotFoundException", "File does not exist: /f/a"),
}


@pytest.mark.parametrize(("path", "java_class", "message"), NO_TARGET.values(), ids=NO_TARGET)
async def test_what_is_no_link_has_no_target(path: str, java_class: str, message: str) -> None:
    served = await linked()
    with pytest.raises(RemoteFault) as refusal:
        await served.call("getLinkTarget", path=path)
    assert (refusal.value.java_class, refusal.value.message) == (java_class, message)


async def test_nobody_learns_through_targets_what_is_in_a_closed_directory() -> None:
    served = await linked()
    await served.call("setPermission", src="/d", permission={"perm": 0})
    with pytest.raises(RemoteFault, match="Permission denied"):
        await served.call("getLinkTarget", path="/d/f", user="alice")


async def test_a_link_is_looked_at_and_deleted_as_itself() -> None:
    served = await linked()
    answer = await served.call("getFileLinkInfo", src="/link")
    assert isinstance(answer, calls.GetFileLinkInfoResponseProto)
    assert (answer.fs.fileType, answer.fs.symlink) == (HdfsFileStatusProto.IS_SYMLINK, b"/gone")
    with pytest.raises(RemoteFault, match="Path is not a file: /link"):
        await served.call("getPreferredBlockSize", filename="/link")
    deleted = await served.call("delete", src="/link", recursive=False)
    assert deleted == calls.DeleteResponseProto(result=True)
    assert served.namespace.tree.find("/link") is None


async def test_a_link_moves_as_itself() -> None:
    served = await linked()
    await served.call("rename", src="/link", dst="/d/e")
    link = served.namespace.tree.node("/d/e/link")
    assert isinstance(link, INodeSymlink)
    assert link.target == b"/gone"
