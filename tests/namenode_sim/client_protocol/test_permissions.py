"""Who may do what, and with which words the others are refused."""

import pytest

from ha.rpc.errors import RemoteFault
from namenode_sim.client_protocol.permissions import symbolic
from namenode_sim.proto.hdfs_types_pb2 import AclEntryProto
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve

DENIED = "org.apache.hadoop.security.AccessControlException"
MODE = {"permission": {"perm": 0o700}}


async def prepared() -> Served:
    served = serve()
    await served.mkdirs("/home/alice")
    await served.call("setOwner", src="/home/alice", username="alice", groupname="staff")
    await served.call("setPermission", src="/home/alice", permission={"perm": 0o750})
    await served.touch("/home/alice/f", user="alice")
    await served.mkdirs("/tmp")
    await served.call("setPermission", src="/tmp", permission={"perm": 0o1777})
    await served.touch("/tmp/alice", user="alice")
    await served.mkdirs("/open")
    await served.call("setPermission", src="/open", permission={"perm": 0o777})
    return served


HOME = '"/home/alice":alice:staff:drwxr-x---'
REFUSED: dict[str, tuple[str, str, Fields, str]] = {
    "nobody else walks in": (
        "carol",
        "getFileInfo",
        {"src": "/home/alice/f"},
        f"Permission denied: user=carol, access=EXECUTE, inode={HOME}",
    ),
    "nobody else lists": (
        "carol",
        "getListing",
        {"src": "/home/alice", "startAfter": b"", "needLocation": False},
        f"Permission denied: user=carol, access=READ_EXECUTE, inode={HOME}",
    ),
    "the group does not write": (
        "bob",
        "delete",
        {"src": "/home/alice/f", "recursive": False},
        f"Permission denied: user=bob, access=WRITE, inode={HOME}",
    ),
    "nor rename": (
        "bob",
        "rename",
        {"src": "/home/alice/f", "dst": "/open/f"},
        f"Permission denied: user=bob, access=WRITE, inode={HOME}",
    ),
    "nor rename into": (
        "bob",
        "rename",
        {"src": "/open", "dst": "/home/alice/o"},
        'Permission denied: user=bob, access=WRITE, inode="/":hdfs:supergroup:drwxr-xr-x',
    ),
    "only the owner changes the mode": (
        "bob",
        "setPermission",
        {"src": "/home/alice/f", **MODE},
        "Permission denied. user=bob is not the owner of inode=/home/alice/f",
    ),
    "only the superuser gives away": (
        "alice",
        "setOwner",
        {"src": "/home/alice/f", "username": "bob"},
        "User alice is not a super user (non-super user cannot change owner).",
    ),
    "only one's own groups": (
        "alice",
        "setOwner",
        {"src": "/home/alice/f", "groupname": "wheel"},
        "User alice does not belong to wheel",
    ),
    "the sticky bit protects": (
        "bob",
        "delete",
        {"src": "/tmp/alice", "recursive": False},
        'Permission denied by sticky bit: user=bob, path="/tmp/alice":alice:supergroup:-rw-r--r--,'
        ' parent="/tmp":hdfs:supergroup:drwxrwxrwt',
    ),
    "quotas are the superuser's": (
        "alice",
        "setQuota",
        {"path": "/home/alice", "namespaceQuota": 1, "storagespaceQuota": 1},
        "Access denied for user alice. Superuser privilege is required",
    ),
    "a recursive delete needs all of the subtree": (
        "bob",
        "delete",
        {"src": "/open/mixed", "recursive": True},
        "Permission denied: user=bob, access=ALL, "
        'inode="/open/mixed/in":alice:supergroup:drwx------',
    ),
}


@pytest.mark.parametrize(
    ("user", "method", "fields", "message"), REFUSED.values(), ids=REFUSED.keys()
)
async def test_refused(user: str, method: str, fields: Fields, message: str) -> None:
    served = await prepared()
    await served.mkdirs("/open/mixed", 0o777, user="bob")
    await served.mkdirs("/open/mixed/in", 0o700, user="alice")
    await served.touch("/open/mixed/in/f", user="alice")
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await served.call(method, user=user, **fields)
    assert (refusal.value.java_class, refusal.value.message) == (DENIED, message)
    assert len(served.log.frames) == edits


ALLOWED: dict[str, tuple[str, str, Fields]] = {
    "the group reads": ("bob", "getFileInfo", {"src": "/home/alice/f"}),
    "the owner changes the mode": ("alice", "setPermission", {"src": "/home/alice/f", **MODE}),
    "to one's own group": ("alice", "setOwner", {"src": "/home/alice/f", "groupname": "alice"}),
    "one's own in a sticky directory": (
        "alice",
        "delete",
        {"src": "/tmp/alice", "recursive": False},
    ),
    "the superuser": ("hdfs", "delete", {"src": "/tmp/alice", "recursive": False}),
    "the supergroup": ("admin", "delete", {"src": "/tmp/alice", "recursive": False}),
    "everybody in an open directory": (
        "carol",
        "mkdirs",
        {"src": "/open/c", "masked": {"perm": 0o755}, "createParent": True},
    ),
}


@pytest.mark.parametrize(("user", "method", "fields"), ALLOWED.values(), ids=ALLOWED.keys())
async def test_allowed(user: str, method: str, fields: Fields) -> None:
    served = await prepared()
    await served.call(method, user=user, **fields)


async def test_a_new_inode_belongs_to_its_maker_and_to_its_directory_s_group() -> None:
    served = await prepared()
    made = await served.touch("/home/alice/new", user="alice")
    assert (made.owner, made.group) == ("alice", "staff")
    await served.mkdirs("/open/x/y", 0o500, user="carol")
    between = await served.status("/open/x")
    assert between is not None
    assert (
        oct(between.permission.perm) == "0o700"
    )  # its owner can always walk a directory made on the way


def entry(text: str) -> AclEntryProto:
    """``user:bob:rw-`` or ``default:group::r-x``."""
    scope = AclEntryProto.DEFAULT if text.startswith("default:") else AclEntryProto.ACCESS
    kind, name, bits = text.removeprefix("default:").split(":")
    value = sum(bit for bit, letter in zip((4, 2, 1), bits, strict=True) if letter != "-")
    return AclEntryProto(
        scope=scope,
        type=AclEntryProto.AclEntryTypeProto.Value(kind.upper()),
        name=name,
        permissions=AclEntryProto.FsActionProto.ValueType(value),
    )


ACLS: dict[str, tuple[list[str], str, bool]] = {
    "a named user": (["user:carol:r-x"], "carol", True),
    "masked": (["user:carol:r-x", "mask::---"], "carol", False),
    "a named group": (["group:staff:r-x"], "bob", True),
    "the owner's bits count first": (["user:alice:---"], "alice", True),
    "denied by name though others may": (["user:carol:---", "other::r-x"], "carol", False),
    "others": (["other::r-x"], "carol", True),
}


@pytest.mark.parametrize(("entries", "user", "allowed"), ACLS.values(), ids=ACLS.keys())
async def test_acls_decide(entries: list[str], user: str, allowed: bool) -> None:
    served = await prepared()
    await served.call(
        "modifyAclEntries", src="/home/alice", aclSpec=[entry(text) for text in entries]
    )
    listing = served.call(
        "getListing", user=user, src="/home/alice", startAfter=b"", needLocation=False
    )
    if allowed:
        await listing
    else:
        with pytest.raises(RemoteFault, match="Permission denied"):
            await listing


async def test_a_default_acl_is_inherited_and_overrides_the_umask() -> None:
    served = await prepared()
    await served.call(
        "modifyAclEntries",
        src="/open",
        aclSpec=[entry("default:user:bob:rwx"), entry("default:group::r-x")],
    )
    made = await served.touch("/open/f", masked={"perm": 0o600}, unmasked={"perm": 0o666})
    assert oct(made.permission.perm) == "0o666"  # the mask is the group's share of 0666
    assert served.namespace.tree.file("/open/f").acl is not None
    await served.mkdirs("/open/d", 0o700, unmasked={"perm": 0o777})
    held = await served.call("getAclStatus", src="/open/d")
    assert "bob" in str(held)


@pytest.mark.parametrize(
    ("mode", "text"),
    [(0o755, "rwxr-xr-x"), (0o1777, "rwxrwxrwt"), (0o1776, "rwxrwxrwT"), (0, "---------")],
)
def test_modes_in_words(mode: int, text: str) -> None:
    assert symbolic(mode) == text
