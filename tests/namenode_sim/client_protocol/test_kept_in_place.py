"""What can be neither deleted nor moved: trees with snapshots, protected directories, the root."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.words.errors import SNAPSHOT, SNAPSHOT_ACCESS_CONTROL
from namenode_sim.client_protocol.words.model import Settings
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve
from tests.namenode_sim.client_protocol.permissions_world import a_rename2

DENIED = "org.apache.hadoop.security.AccessControlException"
MKDIRS: Fields = {"masked": {"perm": 0o755}, "createParent": True}


async def with_snapshots() -> Served:
    """``/a/taken`` and the empty ``/a/bare`` have a snapshot; ``/free/s`` and ``/b`` may have."""
    served = serve()
    for path in ("/a/taken/in", "/a/bare", "/free/s/in", "/b/deep", "/plain", "/empty"):
        await served.mkdirs(path)
    await served.touch("/a/taken/f")
    for path in ("/a/taken", "/a/bare", "/free/s", "/b"):
        await served.call("allowSnapshot", snapshotRoot=path)
    for path in ("/a/taken", "/a/bare"):
        await served.call("createSnapshot", snapshotRoot=path, snapshotName="one")
    return served


TAKEN = "The directory /a/taken cannot be deleted since /a/taken is snapshottable and already has"
BARE = "The directory /a/bare cannot be deleted since"
NESTED = "Unable to rename because {} has snapshottable descendant directories and {} is a descent"
READ_ONLY = "Modification on a read-only snapshot is disallowed"
REFUSED: dict[str, tuple[str, Fields, str, str]] = {
    "a deletion": ("delete", {"src": "/a/taken", "recursive": True}, SNAPSHOT, TAKEN),
    "a deletion above": ("delete", {"src": "/a", "recursive": True}, SNAPSHOT, TAKEN),
    "a move": ("rename", {"src": "/a/taken", "dst": "/x"}, SNAPSHOT, TAKEN),
    "a move above": ("rename", {"src": "/a", "dst": "/x"}, SNAPSHOT, TAKEN),
    "a move to its own place": ("rename", {"src": "/a/taken", "dst": "/a"}, SNAPSHOT, TAKEN),
    "a move to nowhere": ("rename", {"src": "/a/taken", "dst": "/n/x"}, SNAPSHOT, TAKEN),
    "the other move": (*a_rename2("/a/taken", "/x"), SNAPSHOT, TAKEN),
    "the other move above": (*a_rename2("/a", "/x"), SNAPSHOT, TAKEN),
    "the other move to its own place": (*a_rename2("/a/taken", "/a/taken"), SNAPSHOT, TAKEN),
    "a move over it": (*a_rename2("/empty", "/a/bare"), SNAPSHOT, BARE),
    "into another": (
        "rename", {"src": "/free/s", "dst": "/b/x"}, SNAPSHOT, NESTED.format("/free/s", "/b"),
    ),
    "deep into another": (
        "rename", {"src": "/free", "dst": "/b/deep"}, SNAPSHOT, NESTED.format("/free", "/b/deep"),
    ),
    "the other move into another": (
        *a_rename2("/free/s", "/b/x"), SNAPSHOT, NESTED.format("/free/s", "/b"),
    ),
    "right below the root": (
        "rename", {"src": "/free/s", "dst": "/"}, SNAPSHOT, NESTED.format("/free/s", "/"),
    ),
    "a deletion in a snapshot": (
        "delete", {"src": "/a/taken/.snapshot/one/f", "recursive": True},
        SNAPSHOT_ACCESS_CONTROL, READ_ONLY,
    ),
    "a new directory in a snapshot": (
        "mkdirs", {"src": "/a/taken/.snapshot/one/x", **MKDIRS},
        SNAPSHOT_ACCESS_CONTROL, READ_ONLY,
    ),
    "a move out of a snapshot": (
        "rename", {"src": "/a/taken/.snapshot/one/f", "dst": "/plain/f"},
        SNAPSHOT_ACCESS_CONTROL, READ_ONLY,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "fields", "java_class", "message"), REFUSED.values(), ids=REFUSED.keys()
)
async def test_snapshots_are_in_the_way(
    method: str, fields: Fields, java_class: str, message: str
) -> None:
    served = await with_snapshots()
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault, match=message) as refusal:
        await served.call(method, **fields)
    assert refusal.value.java_class == java_class
    assert len(served.log.frames) == edits


ALLOWED: dict[str, tuple[str, Fields, str | None]] = {
    "what a snapshot holds is deleted": (
        "delete", {"src": "/a/taken/in", "recursive": True}, None,
    ),
    "a tree without snapshots is deleted": ("delete", {"src": "/free", "recursive": True}, None),
    "a tree elsewhere is deleted": ("delete", {"src": "/empty", "recursive": True}, None),
    "what a snapshot holds is moved": (
        "rename", {"src": "/a/taken/in", "dst": "/plain/in"}, "/plain/in",
    ),
    "a tree without snapshots is moved": (
        "rename", {"src": "/free/s", "dst": "/plain/s"}, "/plain/s/in",
    ),
    "any tree is moved into one": ("rename", {"src": "/empty", "dst": "/b/deep"}, "/b/deep/empty"),
    "the other move": (*a_rename2("/free/s", "/plain/s"), "/plain/s/in"),
    "over one without snapshots": (*a_rename2("/empty", "/b/deep"), "/b/deep"),
    "a file right below the root": ("rename", {"src": "/a/taken/f", "dst": "/"}, "/f"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "fields", "present"), ALLOWED.values(), ids=ALLOWED.keys())
async def test_snapshots_are_not_in_the_way(
    method: str, fields: Fields, present: str | None
) -> None:
    served = await with_snapshots()
    await served.call(method, **fields)
    assert await served.status(fields["src"]) is None
    assert present is None or await served.status(present) is not None


ANSWERS: dict[str, tuple[str, str, bool]] = {
    "nothing": ("/none", "/x", False),
    "the root": ("/", "/x", False),
    "the root into a directory": ("/", "/plain", False),
    "what may have snapshots, to its own place": ("/b", "/", True),
}


@pytest.mark.parametrize(("src", "dst", "result"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_a_rename_that_moves_nothing(src: str, dst: str, result: bool) -> None:
    served = await with_snapshots()
    answer = await served.call("rename", src=src, dst=dst)
    assert answer == calls.RenameResponseProto(result=result)


DELETED: dict[str, tuple[str, bool, bool]] = {
    "nothing": ("/none", True, False),
    "the root": ("/", True, False),
    "an empty directory": ("/empty", False, True),
    "a full directory": ("/free", True, True),
    "a file": ("/plain/f", False, True),
}


@pytest.mark.parametrize(("src", "recursive", "result"), DELETED.values(), ids=DELETED.keys())
async def test_a_deletion_answers_with_true_or_false(
    src: str, recursive: bool, result: bool
) -> None:
    served = await with_snapshots()
    await served.touch("/plain/f")
    edits = len(served.log.frames)
    answer = await served.call("delete", src=src, recursive=recursive)
    assert answer == calls.DeleteResponseProto(result=result)
    assert len(served.log.frames) == edits + result


PROTECTED: dict[str, tuple[str, Fields]] = {
    "a deletion": ("delete", {"src": "/p", "recursive": True}),
    "a move": ("rename", {"src": "/p", "dst": "/x"}),
    "the other move": a_rename2("/p", "/x"),
}


@pytest.mark.parametrize(("method", "fields"), PROTECTED.values(), ids=PROTECTED.keys())
async def test_a_protected_directory_stays_while_it_holds_something(
    method: str, fields: Fields
) -> None:
    served = serve(settings=Settings(protected=frozenset({"/p"})))
    await served.touch("/p/f")
    with pytest.raises(RemoteFault, match="non-empty protected directory /p") as refusal:
        await served.call(method, **fields)
    assert refusal.value.java_class == DENIED
    await served.call("delete", src="/p/f", recursive=False)
    await served.call(method, **fields)
    assert await served.status("/p") is None
