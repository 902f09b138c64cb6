"""What new files and directories get: mode, ACL, owner and group, their names, room for them."""

from dataclasses import dataclass

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import INVALID_PATH
from namenode_sim.client_protocol.words.errors import HADOOP_ILLEGAL_ARGUMENT, NAME_TOO_LONG
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits.ops import Add, Close, Mkdir, SetPermissions
from namenode_sim.edits.values import Permission
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve
from tests.namenode_sim.client_protocol.permissions_world import entry, text_of

LONG = "n" * 256


def made(served: Served) -> list[Mkdir | Add]:
    return [op for op in served.log.ops() if isinstance(op, Mkdir | Add)]


async def below(acl: str, settings: Settings | None = None) -> Served:
    """``/d`` of mode 0755 with these entries added to its ACL."""
    served = serve(settings=settings)
    await served.mkdirs("/d")
    await served.call("modifyAclEntries", src="/d", aclSpec=[entry(e) for e in acl.split()])
    return served


@dataclass(frozen=True, slots=True)
class Inheriting:
    """A default ACL, the modes that are asked for, and what a new inode gets."""

    default: str
    masked: int
    unmasked: int | None
    mode: int
    access: str
    """A file has no entries if these say no more than its mode."""


MINIMAL = "default:user::rwx default:group::rwx default:other::rwx"
NAMED = (
    "default:user::rwx default:user:bob:rwx default:group::rwx default:group:staff:rwx "
    "default:mask::rwx default:other::rwx"
)
INHERITED: dict[str, Inheriting] = {
    "the parts that are asked for": Inheriting(
        MINIMAL, 0, 0o412, 0o412, "user::r-- group::--x other::-w-"
    ),
    "other parts": Inheriting(MINIMAL, 0, 0o124, 0o124, "user::--x group::-w- other::r--"),
    "the masked mode where it is all that is known": Inheriting(
        MINIMAL, 0o241, None, 0o241, "user::-w- group::r-- other::--x"
    ),
    "everything asked for": Inheriting(
        "default:user::r-x default:group::-wx default:other::--x",
        0o700, 0o777, 0o531, "user::r-x group::-wx other::--x",
    ),
    "the sticky bit": Inheriting(
        "default:user::rw- default:group::r-- default:other::---",
        0, 0o1777, 0o1640, "user::rw- group::r-- other::---",
    ),
    "bits of which HDFS knows one": Inheriting(
        MINIMAL, 0, 0x800017D1, 0o1721, "user::rwx group::-w- other::--x"
    ),
    "names, whom the mask limits": Inheriting(
        NAMED, 0, 0o421, 0o421,
        "user::r-- user:bob:rwx group::rwx group:staff:rwx mask::-w- other::--x",
    ),
    "a mask of its own": Inheriting(
        "default:user::rwx default:user:bob:r-x default:group::rw- default:mask::r-x "
        "default:other::rwx",
        0, 0o764, 0o744, "user::rwx user:bob:r-x group::rw- mask::r-- other::r--",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", INHERITED.values(), ids=INHERITED.keys())
async def test_a_default_acl_is_inherited(row: Inheriting) -> None:
    """AclStorage.copyINodeDefaultAcl."""
    served = await below(row.default)
    asked: Fields = {"masked": {"perm": row.masked}}
    if row.unmasked is not None:
        asked["unmasked"] = {"perm": row.unmasked}
    await served.create("/d/f", **asked)
    await served.mkdirs("/d/e", **asked)
    file, directory = made(served)[-2:]
    assert (file.permission.mode, directory.permission.mode) == (row.mode, row.mode)
    assert text_of(file.acl) == (row.access if "mask" in row.access else "")
    assert text_of(directory.acl) == f"{row.access} {row.default}"


async def test_a_default_acl_is_handed_down() -> None:
    served = await below(NAMED)
    await served.mkdirs("/d/x/y", 0, unmasked={"perm": 0o700})
    await served.create("/d/v/f", masked={"perm": 0o640})
    acls = {op.path: text_of(op.acl) for op in made(served)}
    assert acls["/d/x/y"] == acls["/d/x"]
    assert acls["/d/x"].endswith(f" {NAMED}")
    assert acls["/d/v/f"] == (
        "user::rw- user:bob:rwx group::rwx group:staff:rwx mask::r-- other::---"
    )


async def test_what_rules_a_directory_itself_is_not_inherited() -> None:
    served = await below("user:bob:rwx group:staff:rwx")
    await served.create("/d/f", masked={"perm": 0o600}, unmasked={"perm": 0o666})
    await served.mkdirs("/d/e", 0o700, unmasked={"perm": 0o777})
    file, directory = made(served)[-2:]
    assert (file.permission.mode, file.acl) == (0o600, ())
    assert (directory.permission.mode, directory.acl) == (0o700, ())


@pytest.mark.parametrize("known", [False, True], ids=["not told", "told"])
async def test_without_posix_inheritance_the_umask_counts(*, known: bool) -> None:
    """dfs.namenode.posix.acl.inheritance.enabled."""
    served = await below(MINIMAL, Settings(posix_acl_inheritance=False))
    asked: Fields = {"unmasked": {"perm": 0o666}} if known else {}
    await served.create("/d/f", masked={"perm": 0o640}, **asked)
    await served.mkdirs("/d/e", 0o750, **asked)
    assert [op.permission.mode for op in made(served)[-2:]] == [0o640, 0o750]


@pytest.mark.parametrize(
    ("asked", "mode"),
    [(0o644, 0o644), (0o1777, 0o1777), (0o7755, 0o1755), (0o40755, 0o755), (0x800001ED, 0o755)],
    ids=oct,
)
async def test_a_mode_has_the_bits_that_hdfs_knows(asked: int, mode: int) -> None:
    """FsPermission.fromShort."""
    served = serve()
    await served.create("/f", masked={"perm": asked})
    await served.mkdirs("/d", asked)
    assert [op.permission.mode for op in made(served)] == [mode, mode]
    await served.mkdirs("/e", 0)
    await served.call("setPermission", src="/e", permission={"perm": asked})
    assert served.log.ops()[-1] == SetPermissions("/e", mode)


async def test_directories_on_the_way_can_be_walked_by_their_owner() -> None:
    served = serve()
    await served.mkdirs("/a/b/c", 0o500)
    await served.mkdirs("/d", 0o1053)
    await served.create("/d/e/f/g", masked={"perm": 0o640})
    modes = {op.path: oct(op.permission.mode) for op in made(served)}
    assert modes == {
        "/a": "0o700", "/a/b": "0o700", "/a/b/c": "0o500",
        "/d": "0o1053", "/d/e": "0o1353", "/d/e/f": "0o1353", "/d/e/f/g": "0o640",
    }  # fmt: skip


async def test_each_edit_of_a_file_names_its_owner_group_and_mode() -> None:
    served = serve()
    await served.mkdirs("/home")
    await served.call("setOwner", src="/home", username="alice", groupname="staff")
    await served.touch("/home/x/f", user="alice", masked={"perm": 0o640})
    await served.touch("/home/x/f", user="alice", createFlag=3, masked={"perm": 0o600})
    ops = served.log.ops()
    assert [op.permission for op in ops if isinstance(op, Mkdir)][-1] == Permission(
        "alice", "staff", 0o755
    )
    assert [op.permission for op in ops if isinstance(op, Add | Close)] == [
        Permission("alice", "staff", mode) for mode in (0o640, 0o640, 0o600, 0o600)
    ]


NAMES: dict[str, tuple[str, str, str]] = {
    "a long one": (f"/{LONG}", NAME_TOO_LONG, "in directory / is exceeded"),
    "a long one in what is new": (f"/a/b/{LONG}", NAME_TOO_LONG, "in directory /a/b is exceeded"),
    "a long one above another": (f"/a/{LONG}/b", NAME_TOO_LONG, "in directory /a is exceeded"),
    "that of snapshots": ("/d/.snapshot", HADOOP_ILLEGAL_ARGUMENT, '".snapshot" is a reserved'),
    "that of snapshots in what is new": (
        "/a/.snapshot", HADOOP_ILLEGAL_ARGUMENT, '".snapshot" is a reserved name.',
    ),
    "that of snapshots above another": (
        "/a/.snapshot/b", HADOOP_ILLEGAL_ARGUMENT, '".snapshot" is a reserved name.',
    ),
}  # fmt: skip


@pytest.mark.parametrize("method", ["create", "mkdirs"])
@pytest.mark.parametrize(("path", "java_class", "told"), NAMES.values(), ids=NAMES.keys())
async def test_a_name_that_nothing_can_have(
    path: str, java_class: str, told: str, method: str
) -> None:
    served = serve()
    await served.mkdirs("/d")
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await (served.create(path) if method == "create" else served.mkdirs(path))
    assert refusal.value.java_class == java_class
    assert told in refusal.value.message
    assert len(served.log.frames) == edits


@pytest.mark.parametrize("path", ["/.reserved", "/.reserved/a"])
async def test_nothing_is_made_at_the_reserved_path(path: str) -> None:
    """Each call has words of its own (FSNamesystem.startFileInt, FSDirectory)."""
    served = serve()
    with pytest.raises(RemoteFault) as refusal:
        await served.create(path)
    assert (refusal.value.java_class, refusal.value.message) == (
        INVALID_PATH, f"Invalid path name {path}"
    )  # fmt: skip
    with pytest.raises(RemoteFault, match="is reserved and cannot be created") as refusal:
        await served.mkdirs(path)
    assert refusal.value.java_class == HADOOP_ILLEGAL_ARGUMENT
    assert not served.log.frames


@pytest.mark.parametrize("path", [f"/{LONG[1:]}/{LONG[1:]}", "/a/.reserved", "/a/b/.reserved/c"])
async def test_a_name_that_is_allowed(path: str) -> None:
    served = serve()
    await served.create(path)
    assert await served.status(path) is not None


@dataclass(frozen=True, slots=True)
class Room:
    """Which directory has which quota of names, and the path that is made."""

    at: str
    quota: int
    path: str
    fits: bool


ROOM: dict[str, Room] = {
    "for nothing": Room("/q", 0, "/q/a", fits=False),
    "for itself alone": Room("/q", 1, "/q/a", fits=False),
    "for one": Room("/q", 2, "/q/a", fits=True),
    "not for the second on the way": Room("/q", 2, "/q/a/b", fits=False),
    "for two": Room("/q", 3, "/q/a/b", fits=True),
    "above, for one too few": Room("/", 4, "/q/e/a/b", fits=False),
    "above": Room("/", 5, "/q/a/b", fits=True),
}


@pytest.mark.parametrize("method", ["create", "mkdirs"])
@pytest.mark.parametrize("row", ROOM.values(), ids=ROOM.keys())
async def test_there_must_be_room_for_everything_on_the_way(row: Room, method: str) -> None:
    """``/`` has ``/q``; the quota counts the directory that it is set on."""
    served = serve()
    await served.mkdirs("/q")
    await served.call(
        "setQuota", path=row.at, namespaceQuota=row.quota, storagespaceQuota=2**64 - 1
    )
    making = served.create(row.path) if method == "create" else served.mkdirs(row.path)
    if row.fits:
        await making
    else:
        with pytest.raises(RemoteFault, match="quota"):
            await making
    assert (await served.status(row.path) is not None) is row.fits
