"""The rights of callers, and with which words the others are refused."""

import pytest

from ha.rpc.errors import RemoteFault
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.client_protocol.words.permissions import symbolic
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields
from tests.namenode_sim.client_protocol.permissions_world import a_rename2, entry, prepared

DENIED = "org.apache.hadoop.security.AccessControlException"
MODE = {"permission": {"perm": 0o700}}


HOME = '"/home/alice":alice:staff:drwxr-x---'
NO_OWNER = "Access denied for user alice. Superuser or owner of parent folder privilege is required"
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
    "nor out of the closed": (
        "bob",
        *a_rename2("/home/alice/f", "/open/f"),
        f"Permission denied: user=bob, access=WRITE, inode={HOME}",
    ),
    "nor one's own into the closed": (
        "alice",
        "rename",
        {"src": "/home/alice/f", "dst": "/home"},
        'Permission denied: user=alice, access=WRITE, inode="/home":hdfs:supergroup:drwxr-xr-x',
    ),
    "nor so with the other rename": (
        "alice",
        *a_rename2("/home/alice/f", "/home/f"),
        'Permission denied: user=alice, access=WRITE, inode="/home":hdfs:supergroup:drwxr-xr-x',
    ),
    "nor a directory, however deep": (
        "bob",
        "mkdirs",
        {"src": "/home/bob/x/y", "masked": {"perm": 0o755}, "createParent": True},
        'Permission denied: user=bob, access=WRITE, inode="/home":hdfs:supergroup:drwxr-xr-x',
    ),
    "nobody learns what a closed directory has": (
        "carol",
        "getFileInfo",
        {"src": "/home/alice/f/x"},
        f"Permission denied: user=carol, access=EXECUTE, inode={HOME}",
    ),
    "nor whether it is empty": (
        "bob",
        "delete",
        {"src": "/home/alice", "recursive": False},
        'Permission denied: user=bob, access=WRITE, inode="/home":hdfs:supergroup:drwxr-xr-x',
    ),
    "the root is no exception": (
        "alice",
        "delete",
        {"src": "/", "recursive": True},
        'Permission denied: user=alice, access=ALL, inode="/":hdfs:supergroup:drwxr-xr-x',
    ),
    "the sum of a tree is for who may list it": (
        "carol",
        "getContentSummary",
        {"path": "/open/mixed"},
        "Permission denied: user=carol, access=READ_EXECUTE, "
        'inode="/open/mixed/in":alice:supergroup:drwx------',
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
    "also below what is deleted": (
        "bob",
        "delete",
        {"src": "/open/sticky", "recursive": True},
        "Permission denied by sticky bit: user=bob, "
        'path="/open/sticky/c":carol:supergroup:drwxrwxrwx,'
        ' parent="/open/sticky":alice:supergroup:drwxrwxrwt',
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
    "so does the way to the trash": (
        "bob",
        *a_rename2("/open/mixed", "/open/x", to_trash=True),
        "Permission denied: user=bob, access=ALL, "
        'inode="/open/mixed/in":alice:supergroup:drwx------',
    ),
}


@pytest.mark.parametrize(
    ("user", "method", "fields", "message"), REFUSED.values(), ids=REFUSED.keys()
)
async def test_refused(user: str, method: str, fields: Fields, message: str) -> None:
    served = await prepared()
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
    "nothing is asked of what is there already": (
        "carol",
        "mkdirs",
        {"src": "/home", "masked": {"perm": 0o755}, "createParent": True},
    ),
    "a rename needs nothing of the subtree": ("bob", *a_rename2("/open/mixed", "/open/x")),
    "nor of what it replaces": ("alice", *a_rename2("/tmp/alice", "/home/alice/f")),
    "a deletion of nothing": ("alice", "delete", {"src": "/home/alice/none", "recursive": True}),
    "an empty directory of another below one's own": (
        "bob",
        "delete",
        {"src": "/open/own", "recursive": True},
    ),
    "another's in one's own sticky directory": (
        "alice",
        "delete",
        {"src": "/open/sticky/c", "recursive": False},
    ),
    "a look at another's in a sticky directory": ("bob", "listXAttrs", {"src": "/tmp/alice"}),
}


@pytest.mark.parametrize(("user", "method", "fields"), ALLOWED.values(), ids=ALLOWED.keys())
async def test_allowed(user: str, method: str, fields: Fields) -> None:
    served = await prepared()
    await served.call(method, user=user, **fields)


async def test_the_root_is_below_nothing_that_could_be_closed() -> None:
    served = await prepared()
    with pytest.raises(RemoteFault, match="rename destination cannot be the root"):
        await served.call("rename2", user="alice", src="/home/alice/f", dst="/")


SWITCHED_OFF: dict[str, tuple[str, Fields]] = {
    "walks in": ("getFileInfo", {"src": "/home/alice/f"}),
    "lists": ("getListing", {"src": "/home/alice", "startAfter": b"", "needLocation": False}),
    "sums": ("getContentSummary", {"path": "/open/mixed"}),
    "makes": ("mkdirs", {"src": "/home/x/y", "masked": {"perm": 0o755}, "createParent": True}),
    "moves": ("rename", {"src": "/home/alice/f", "dst": "/home"}),
    "deletes a tree": ("delete", {"src": "/open/mixed", "recursive": True}),
    "deletes in a sticky directory": ("delete", {"src": "/tmp/alice", "recursive": False}),
    "limits": ("setQuota", {"path": "/tmp", "namespaceQuota": 9, "storagespaceQuota": 9}),
}


@pytest.mark.parametrize(("method", "fields"), SWITCHED_OFF.values(), ids=SWITCHED_OFF.keys())
async def test_anybody_may_where_permissions_are_switched_off(method: str, fields: Fields) -> None:
    served = await prepared(Settings(permissions_enabled=False))
    await served.call(method, user="carol", **fields)


#   the caller that sets a quota, on what, where alice owns "/home/alice", and how that is refused
OWNERS_LIMITED: dict[str, tuple[str, str, str]] = {
    "below one's own": ("alice", "/home/alice/d", ""),
    "one's own": ("alice", "/home/alice", NO_OWNER),
    "another's": ("bob", "/home/alice/d", NO_OWNER.replace("alice", "bob")),
    "where one may not walk": ("carol", "/home/alice/d", f"access=EXECUTE, inode={HOME}"),
    "the root": ("alice", "/", NO_OWNER),
    "below nothing": ("alice", "/none/d", "Directory/File does not exist /none"),
    "the superuser": ("hdfs", "/home/alice", ""),
}


@pytest.mark.parametrize(
    ("user", "path", "told"), OWNERS_LIMITED.values(), ids=OWNERS_LIMITED.keys()
)
async def test_an_owner_may_be_allowed_to_limit_what_is_in_the_directory(
    user: str, path: str, told: str
) -> None:
    served = await prepared(Settings(owners_set_quotas=True))
    await served.mkdirs("/home/alice/d")
    limit = served.call("setQuota", user=user, path=path, namespaceQuota=9, storagespaceQuota=9)
    if not told:
        await limit
        return
    with pytest.raises(RemoteFault, match=told):
        await limit


OWNERS: dict[str, tuple[str, str, str | None]] = {
    "the owner": ("alice", "/home/alice/f", None),
    "the superuser": ("hdfs", "/home/alice/f", None),
    "another": ("bob", "/home/alice/f", "bob is not the owner of inode=/home/alice/f"),
    "who may not even walk there": ("carol", "/home/alice/f", f"access=EXECUTE, inode={HOME}"),
}


@pytest.mark.parametrize("enabled", [True, False], ids=["on", "off"])
@pytest.mark.parametrize(("user", "src", "refusal"), OWNERS.values(), ids=OWNERS.keys())
async def test_a_mode_is_the_owner_s_though_permissions_be_switched_off(
    user: str, src: str, refusal: str | None, enabled: bool
) -> None:
    served = await prepared(Settings(permissions_enabled=enabled))
    change = served.call("setPermission", user=user, src=src, permission={"perm": 0o700})
    if refusal is None:
        await change
    else:
        with pytest.raises(RemoteFault, match=refusal):
            await change


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
    assert "bob" in str(await served.call("getAclStatus", src="/open/d"))


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (0o755, "rwxr-xr-x"),
        (0o1777, "rwxrwxrwt"),
        (0o1776, "rwxrwxrwT"),
        (0o111, "--x--x--x"),
        (0, "---------"),
    ],
)
def test_modes_in_words(mode: int, text: str) -> None:
    assert symbolic(mode) == text
