"""What the calls about ACLs make of an ACL, what they refuse, and what they report of it."""

from dataclasses import dataclass

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import AclStatusProto, FsPermissionProto
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits.ops import SetAcl
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve
from tests.namenode_sim.client_protocol.permissions_world import entry, text_of

ACL = "org.apache.hadoop.hdfs.protocol.AclException"
DENIED = "org.apache.hadoop.security.AccessControlException"
NOT_FOUND = "java.io.FileNotFoundException"


def spec(text: str) -> Fields:
    return {"aclSpec": [entry(each) for each in text.split()]}


async def having(acl: str, settings: Settings | None = None) -> Served:
    """``/d`` of mode 0750 and ``/f`` of mode 0644; the directory with this whole ACL, if any."""
    served = serve(settings=settings)
    await served.mkdirs("/d", 0o750)
    await served.touch("/f")
    if acl:
        await served.call("setAcl", src="/d", **spec(acl))
        assert acl_logged(served) == acl
    return served


def acl_logged(served: Served) -> str:
    op = served.log.ops()[-1]
    assert isinstance(op, SetAcl)
    return text_of(op.entries)


@dataclass(frozen=True, slots=True)
class Change:
    """An ACL, a call with its entries, and what the ACL is then."""

    before: str
    method: str
    entries: str
    after: str


BARE = "user::rwx group::r-x other::---"
MASK = "user::rwx group::r-x mask::r-x other::---"
BOB = "user::rwx user:bob:rw- group::r-x mask::r-- other::---"
DEFAULTS = "default:user::rwx default:group::r-x default:other::---"
DEFAULT_BOB = (
    "default:user::rwx default:user:bob:rw- default:group::r-x default:mask::r-- default:other::---"
)

REPLACED: dict[str, Change] = {
    "nothing is left": Change(
        BOB, "setAcl", "user::r-- group::--- other::r--", "user::r-- group::--- other::r--"
    ),
    "an empty ACL takes all entries away": Change(f"{BOB} {DEFAULT_BOB}", "setAcl", "", ""),
    "in Hadoop's order": Change(
        "",
        "setAcl",
        "default:other::--- default:user::rwx other::--- mask::rwx default:group::r-x group:b:r-- "
        "group:a:r-- group::r-x user:b:r-- user:a:r-- user::rwx",
        "user::rwx user:a:r-- user:b:r-- group::r-x group:a:r-- group:b:r-- mask::rwx other::--- "
        + DEFAULTS,
    ),
    "default entries stay where access entries are given": Change(
        f"{BOB} {DEFAULT_BOB}", "setAcl", MASK, f"{MASK} {DEFAULT_BOB}"
    ),
    "access entries stay where default entries are given": Change(
        BOB, "setAcl", DEFAULTS, f"{BOB} {DEFAULTS}"
    ),
    "the mask is what groups and named users have": Change(
        "",
        "setAcl",
        "user::rwx user:bob:r-- group::--- group:staff:-w- other::--x default:user::rwx "
        "default:group::--x default:user:bob:--- default:other::rw-",
        "user::rwx user:bob:r-- group::--- group:staff:-w- mask::rw- other::--x default:user::rwx "
        "default:user:bob:--- default:group::--x default:mask::--x default:other::rw-",
    ),
    "without names there is no mask": Change(BOB, "setAcl", BARE, BARE),
    "a mask without names is kept if it is given": Change("", "setAcl", MASK, MASK),
    "a mask that is given is not computed": Change(
        "",
        "setAcl",
        "user::rwx user:bob:rw- group::r-x mask::r-- other::---",
        "user::rwx user:bob:rw- group::r-x mask::r-- other::---",
    ),
}
MERGED: dict[str, Change] = {
    "an entry comes in, and the mask is computed anew": Change(
        BOB,
        "modifyAclEntries",
        "user:ann:---",
        "user::rwx user:ann:--- user:bob:rw- group::r-x mask::rwx other::---",
    ),
    "an entry takes the place of the one with its name": Change(
        BOB,
        "modifyAclEntries",
        "user:bob:--- group:bob:r--",
        "user::rwx user:bob:--- group::r-x group:bob:r-- mask::r-x other::---",
    ),
    "a mask stays without names and covers the group": Change(
        MASK, "modifyAclEntries", "group::rwx", "user::rwx group::rwx mask::rwx other::---"
    ),
    "a mask that is given wins": Change(
        BOB,
        "modifyAclEntries",
        "user:ann:rwx mask::--x",
        "user::rwx user:ann:rwx user:bob:rw- group::r-x mask::--x other::---",
    ),
    "a mask alone": Change(BARE, "modifyAclEntries", "mask::r-x", MASK),
    "default entries that are not given are the access entries": Change(
        BOB,
        "modifyAclEntries",
        "default:group:staff:-w-",
        f"{BOB} default:user::rwx default:group::r-x default:group:staff:-w- default:mask::rwx "
        "default:other::---",
    ),
    "one that is given is not copied": Change(
        BARE,
        "modifyAclEntries",
        "default:user::r--",
        f"{BARE} default:user::r-- default:group::r-x default:other::---",
    ),
    "the mask of the other scope stays": Change(
        f"{BOB} {DEFAULT_BOB}",
        "modifyAclEntries",
        "group::r-x",
        f"{BOB.replace('mask::r--', 'mask::rwx')} {DEFAULT_BOB}",
    ),
    "a default mask alone is no default ACL": Change(
        BARE, "modifyAclEntries", "default:mask::r--", BARE
    ),
}
REMOVED: dict[str, Change] = {
    "the mask stays when its names go": Change(BOB, "removeAclEntries", "user:bob:---", MASK),
    "a mask goes with its names if it is removed too": Change(
        BOB, "removeAclEntries", "user:bob:--- mask::---", BARE
    ),
    "what is not there changes nothing": Change(
        BOB, "removeAclEntries", "user:ann:rw- group:bob:rw- default:user:bob:rw-", BOB
    ),
    "a default entry that must be there is the access entry again": Change(
        f"{BARE} default:user::--x default:group::--x default:other::--x",
        "removeAclEntries",
        "default:user::---",
        f"{BARE} default:user::rwx default:group::--x default:other::--x",
    ),
    "a default mask that is left alone goes": Change(
        f"{BOB} default:user::rwx default:group::r-x default:mask::r-- default:other::---",
        "removeAclEntries",
        "default:user::--- default:group::--- default:other::---",
        BOB,
    ),
    "all that is default": Change(f"{BOB} {DEFAULT_BOB}", "removeDefaultAcl", "", BOB),
    "all": Change(f"{BOB} {DEFAULT_BOB}", "removeAcl", "", ""),
}


@pytest.mark.parametrize(
    "row",
    [*REPLACED.values(), *MERGED.values(), *REMOVED.values()],
    ids=[
        *(f"replaced: {name}" for name in REPLACED),
        *(f"merged: {name}" for name in MERGED),
        *(f"removed: {name}" for name in REMOVED),
    ],
)
async def test_an_acl_changes(row: Change) -> None:
    """AclTransformation."""
    served = await having(row.before)
    takes_entries = row.method not in {"removeDefaultAcl", "removeAcl"}
    await served.call(row.method, src="/d", **(spec(row.entries) if takes_entries else {}))
    assert acl_logged(served) == row.after


@dataclass(frozen=True, slots=True)
class Refusal:
    """An ACL, a call with its entries, and what it is answered instead."""

    before: str
    method: str
    entries: str
    message: str
    src: str = "/d"


def many(count: int, scope: str = "") -> str:
    """Return an ACL that has ``count`` access or default entries once its mask is computed."""
    names = " ".join(f"{scope}user:u{number}:r--" for number in range(count - 4))
    return f"{scope}user::rwx {scope}group::r-x {scope}other::--- {names}"


TWICE = "Invalid ACL: multiple entries with same scope, type and name. Path: /d"
REQUIRED = "Invalid ACL: the user, group and other entries are required. Path: /d"
NAMED = "Invalid ACL: this entry type must not have a name:"
NO_DEFAULT = "Invalid ACL: only directories may have a default ACL. Path: /f"
UNMASKED = "Invalid ACL: mask is required and cannot be deleted. Path: /d"
MANY = "Invalid ACL: ACL has 36 access entries, which exceeds maximum of 32. Path: /d"
REFUSED: dict[str, Refusal] = {
    "the same twice": Refusal("", "setAcl", f"{BARE} user:bob:r-- user:bob:rw-", TWICE),
    "a new one twice": Refusal("", "modifyAclEntries", "user:bob:r-- user:bob:rw-", TWICE),
    "no owner": Refusal("", "setAcl", "group::r-x other::---", REQUIRED),
    "no group": Refusal("", "setAcl", "user::r-x other::---", REQUIRED),
    "no others": Refusal("", "setAcl", "user::r-x group::---", REQUIRED),
    "the owner removed": Refusal("", "removeAclEntries", "user::---", REQUIRED),
    "none to copy": Refusal(
        f"{BARE} {DEFAULTS}", "removeAclEntries", "group::--- default:group::---", REQUIRED
    ),
    "no mask for a name": Refusal(BOB, "removeAclEntries", "mask::---", UNMASKED),
    "no default mask for a name": Refusal(
        f"{BARE} {DEFAULT_BOB}", "removeAclEntries", "default:mask::---", UNMASKED
    ),
    "a mask for somebody": Refusal(
        "", "modifyAclEntries", "mask:bob:r-x", f"{NAMED} mask:bob:r-x. Path: /d"
    ),
    "others by name": Refusal(
        "", "modifyAclEntries", "default:other:bob:r-x", f"{NAMED} default:other:bob:r-x. Path: /d"
    ),
    "a file's default": Refusal("", "modifyAclEntries", "default:user::rwx", NO_DEFAULT, "/f"),
    "a file's default beside access": Refusal("", "setAcl", f"{BARE} {DEFAULTS}", NO_DEFAULT, "/f"),
    "too many": Refusal(
        "",
        "setAcl",
        many(33),
        "Invalid ACL: ACL has 33 access entries, which exceeds maximum of 32. Path: /d",
    ),
    "too many defaults": Refusal(
        "",
        "setAcl",
        many(33, "default:"),
        "Invalid ACL: ACL has 33 default entries, which exceeds maximum of 32. Path: /d",
    ),
    "too many given": Refusal("", "setAcl", many(37), MANY),
    "too many to add": Refusal("", "modifyAclEntries", many(37), MANY),
    "too many to remove": Refusal("", "removeAclEntries", many(37), MANY),
}


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED.keys())
async def test_an_acl_is_refused(row: Refusal) -> None:
    served = await having(row.before)
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await served.call(row.method, src=row.src, **spec(row.entries))
    assert (refusal.value.java_class, refusal.value.message) == (ACL, row.message)
    assert len(served.log.frames) == edits


async def test_each_scope_may_have_as_many_entries_as_the_limit() -> None:
    served = await having("")
    await served.call("setAcl", src="/d", **spec(f"{many(32)} {many(32, 'default:')}"))
    assert len(acl_logged(served).split()) == 64


async def test_a_file_may_have_access_entries() -> None:
    served = await having("")
    await served.call("modifyAclEntries", src="/f", **spec("user:bob:r--"))
    assert acl_logged(served) == "user::rw- user:bob:r-- group::r-- mask::r-- other::r--"


CALLS: dict[str, Fields] = {
    "getAclStatus": {},
    "setAcl": spec(BARE),
    "modifyAclEntries": spec(BARE),
    "removeAclEntries": spec("user:bob:---"),
    "removeDefaultAcl": {},
    "removeAcl": {},
}
WRITES = CALLS.keys() - {"getAclStatus"}


@pytest.mark.parametrize("method", CALLS)
async def test_no_call_is_taken_where_acls_are_switched_off(method: str) -> None:
    served = await having("", Settings(acls_enabled=False))
    with pytest.raises(RemoteFault, match=r"dfs\.namenode\.acls\.enabled to false\.$") as refusal:
        await served.call(method, src="/d", **CALLS[method])
    assert refusal.value.java_class == ACL


@pytest.mark.parametrize("method", sorted(WRITES))
async def test_only_the_owner_changes_an_acl(method: str) -> None:
    served = await having("")
    with pytest.raises(RemoteFault, match="user=alice is not the owner of inode=/d") as refusal:
        await served.call(method, src="/d", user="alice", **CALLS[method])
    assert refusal.value.java_class == DENIED


@pytest.mark.parametrize("method", CALLS)
async def test_what_is_not_there_has_no_acl(method: str) -> None:
    served = await having("")
    with pytest.raises(RemoteFault) as refusal:
        await served.call(method, src="/d/x", **CALLS[method])
    words = "cannot find" if method == "getAclStatus" else "Directory/File does not exist"
    assert (refusal.value.java_class, refusal.value.message) == (NOT_FOUND, f"{words} /d/x")


async def status(served: Served, src: str) -> AclStatusProto:
    answer = await served.call("getAclStatus", src=src)
    assert isinstance(answer, calls.GetAclStatusResponseProto)
    return answer.result


STATUS: dict[str, tuple[str, int, AclStatusProto]] = {
    "a mode alone": (
        "",
        0o755,
        AclStatusProto(sticky=False, permission=FsPermissionProto(perm=0o755)),
    ),
    "a sticky directory": (
        "",
        0o1770,
        AclStatusProto(sticky=True, permission=FsPermissionProto(perm=0o1770)),
    ),
    "entries": (
        f"{BOB} {DEFAULTS}",
        0o740,  # whose group bits become the mask
        AclStatusProto(
            sticky=False,
            permission=FsPermissionProto(perm=0o740),
            entries=[entry(e) for e in f"user:bob:rw- group::r-x {DEFAULTS}".split()],
        ),
    ),
}


@pytest.mark.parametrize(("acl", "mode", "told"), STATUS.values(), ids=STATUS.keys())
async def test_what_is_told_of_an_acl(acl: str, mode: int, told: AclStatusProto) -> None:
    """Leave out of the entries what the mode says."""
    served = await having(acl)
    await served.call("setOwner", src="/d", username="alice", groupname="staff")
    await served.call("setPermission", src="/d", permission={"perm": mode})
    told.owner, told.group = "alice", "staff"
    assert await status(served, "/d") == told


async def test_nobody_owns_the_directory_of_snapshots() -> None:
    """Hadoop answers without an owner, a permission or entries."""
    served = await having(BOB)
    await served.call("allowSnapshot", snapshotRoot="/d")
    assert await status(served, "/d/.snapshot") == AclStatusProto(owner="", group="", sticky=False)
