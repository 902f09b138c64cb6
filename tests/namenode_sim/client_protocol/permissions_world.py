"""A NameNode in memory with files of several users, and permissions as texts."""

from hadoop.proto.hdfs_types_pb2 import AclEntryProto
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.client_protocol.words.permissions import symbolic
from namenode_sim.edits.values import AclEntry, AclScope
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve


async def prepared(settings: Settings | None = None) -> Served:
    """``/home/alice`` is hers and her group's; the others, the sticky ones too, are for all."""
    served = serve(settings=settings)
    await served.mkdirs("/home/alice")
    await served.call("setOwner", src="/home/alice", username="alice", groupname="staff")
    await served.call("setPermission", src="/home/alice", permission={"perm": 0o750})
    await served.touch("/home/alice/f", user="alice", masked={"perm": 0o444})
    await served.mkdirs("/tmp")
    await served.call("setPermission", src="/tmp", permission={"perm": 0o1777})
    await served.touch("/tmp/alice", user="alice")
    await served.mkdirs("/open")
    await served.call("setPermission", src="/open", permission={"perm": 0o777})
    await served.mkdirs("/open/mixed", 0o777, user="bob")
    await served.mkdirs("/open/mixed/in", 0o700, user="alice")
    await served.touch("/open/mixed/in/f", user="alice")
    await served.mkdirs("/open/own/empty", 0o700, user="bob")
    await served.mkdirs("/open/own/other", 0o700, user="bob")
    await served.call("setOwner", src="/open/own/other", username="alice")
    await served.mkdirs("/open/sticky", 0o1777, user="alice")
    await served.mkdirs("/open/sticky/c", 0o777, user="carol")
    return served


def a_rename2(src: str, dst: str, *, to_trash: bool = False) -> tuple[str, Fields]:
    return "rename2", {"src": src, "dst": dst, "overwriteDest": True, "moveToTrash": to_trash}


def bits(letters: str) -> int:
    return sum(bit for bit, letter in zip((4, 2, 1), letters, strict=True) if letter != "-")


def entry(text: str) -> AclEntryProto:
    """``user:bob:rw-`` or ``default:group::r-x``."""
    scope = AclEntryProto.DEFAULT if text.startswith("default:") else AclEntryProto.ACCESS
    kind, name, letters = text.removeprefix("default:").split(":")
    return AclEntryProto(
        scope=scope,
        type=AclEntryProto.AclEntryTypeProto.Value(kind.upper()),
        name=name or None,
        permissions=AclEntryProto.FsActionProto.ValueType(bits(letters)),
    )


def text_of(acl: tuple[AclEntry, ...]) -> str:
    return " ".join(
        f"{'default:' if e.scope == AclScope.DEFAULT else ''}{e.type.name.lower()}:{e.name or ''}:"
        + symbolic(e.permission)[-3:]
        for e in acl
    )
