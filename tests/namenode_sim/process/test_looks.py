"""Looks: reads that are answered in the turn that read them are answered as on the usual way."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.rpc.protocol import Call, Method
from ha.security.rights import RIGHTS
from hadoop.proto.client_namenode_pb2 import GetListingRequestProto
from namenode_sim.client_audit import ClientAudit
from namenode_sim.client_protocol import table
from namenode_sim.client_protocol.reads import quick, quick_listing, reads
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits.ops import Symlink
from namenode_sim.edits.values import AclEntry, AclScope, AclType, Block, Permission
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.process.user_groups import SystemGroups
from tests.namenode_sim.client_protocol.namenode_in_memory import (
    GROUPS,
    SUPERUSER,
    Served,
    linked,
    prepared,
    serve,
)

CASES_IN_EACH_RUN, CASES = 4_000, 100_000
PATHS: Final = (
    "/", "/a", "/a/b", "/a/b/c", "/é", "/a/é", "/l", "/l/b", "/a/l", "/a/gone", "/gone/b", "//a",
    "/a/", "/a//b", "/a/./b", "/a/../b", "a", "", "/.reserved", "/.reserved/raw/a",
    "/.reserved/.inodes/16386", "/.reserved/.inodes/16386/b", "/a/.snapshot", "/a/.snapshot/s0",
    "/a/.snapshot/s0/b", "/a/b/.snapshot", "/a/b/.snapshot/s0/c", "/a/.hidden",
)  # fmt: skip
PLACES: Final = ("/a", "/a/b", "/a/b/c", "/a/c", "/é", "/a/é", "/a/.hidden", "/b")
LOCATIONS: Final = "getBlockLocations"


def fields_of(method: str, path: str, chance: random.Random) -> dict[str, Any]:
    match method:
        case "getListing":
            after, located = chance.choice([b"", b"b", b"\xc3"]), chance.random() < 0.3
            return {"src": path, "startAfter": after, "needLocation": located}
        case "getBlockLocations":
            return {"src": path, "offset": 0, "length": 1 << 40}
        case "getPreferredBlockSize":
            return {"filename": path}
        case "checkAccess":
            return {"path": path, "mode": 4}
        case _:
            return {"src": path}


READS: Final = (
    "getFileInfo", "getFileInfo", "getFileInfo", "getListing", LOCATIONS, "getFileLinkInfo",
    "isFileClosed", "getAclStatus", "checkAccess", "getPreferredBlockSize",
)  # fmt: skip


def look(served: Served, name: str, user: str = SUPERUSER, **fields: object) -> bytes | None:
    return looked(served.face.protocol().methods[name], name, user, fields)


def looked(method: Method, name: str, user: str, fields: Mapping[str, object]) -> bytes | None:
    assert method.look is not None
    call = Call(CLIENT_PROTOCOL, name, b"client-of-16byte", -2, 0, user, None, "127.0.0.1")
    return method.look(call, method.request(**fields).SerializeToString())


async def change(served: Served, chance: random.Random) -> None:
    """Make one change somewhere, as anybody; what is refused changes nothing."""
    path, user = chance.choice(PLACES), chance.choice([SUPERUSER, SUPERUSER, *GROUPS])
    mode, time = chance.choice([0o777, 0o755, 0o700, 0o1777]), chance.randrange(1 << 41)
    policy = chance.choice(["HOT", "COLD"])
    entry = {"type": 0, "scope": 0, "permissions": chance.randrange(8), "name": "bob"}
    attribute = {"namespace": 0, "name": "n", "value": b"v"}
    calls: list[Callable[[], Any]] = [
        lambda: served.mkdirs(path, mode, user=user),
        lambda: served.create(path, user=user, replication=chance.randrange(1, 4)),
        lambda: served.touch(path, clientName="other"),
        lambda: served.touch(path, user=user, blockSize=1 << chance.randrange(20, 28)),
        lambda: served.call("setPermission", src=path, permission={"perm": mode}),
        lambda: served.call("setOwner", src=path, username=user, groupname="staff"),
        lambda: served.call("modifyAclEntries", src=path, aclSpec=[entry]),
        lambda: served.call("setXAttr", src="/a/b/c", xAttr=attribute, flag=1),
        lambda: served.call("setStoragePolicy", src="/a/c", policyName=policy),
        lambda: served.call("setTimes", src=path, mtime=time, atime=chance.randrange(1 << 41)),
        lambda: served.call("rename", src=path, dst=chance.choice(PLACES)),
        lambda: served.call("delete", src=path, recursive=True),
        lambda: served.take_snapshot("/a/b", "s0"),
        lambda: served.call("createSnapshot", snapshotRoot="/a/b", snapshotName=f"s{time % 9}"),
    ]  # fmt: skip
    try:
        await chance.choice(calls)()
    except RemoteFault:
        return


async def compare(
    served: Served, methods: Mapping[str, Method], chance: random.Random, met: Counter[str]
) -> None:
    """Ask the same of both ways, which must answer alike."""
    method, path = chance.choice(READS), chance.choice([*PATHS, *PLACES, *PLACES])
    user, fields = chance.choice(list(GROUPS)), fields_of(method, path, chance)
    logged = len(served.log.frames)
    seen = looked(methods[method], method, user, fields)
    assert logged == len(served.log.frames), "a look changes nothing"
    try:
        usual: Message | None = await served.call(method, user=user, **fields)
    except RemoteFault:
        usual = None
    if usual is None or len(served.log.frames) > logged:  # refused, or an access time moved
        assert seen is None, (method, path, user)
        met["usual"] += 1
        return
    assert seen is not None, (method, path, user)
    assert seen == usual.SerializeToString(), (method, path, user)
    met[method] += 1
    if method in table.QUICK:  # on the usual way, too: what of messages would it be?
        request = methods[method].request(**fields)
        assert seen == table.READS[method](served.scene(user), request).SerializeToString()
        met[f"quick {method}"] += bool(table.QUICK[method].write(served.scene(user), request))


async def play(seed: int, cases: int) -> Counter[str]:
    """Change a namespace and look at it in turns."""
    chance, served, met = random.Random(seed), serve(), Counter[str]()
    methods = served.face.protocol().methods
    await served.call("setPermission", src="/", permission={"perm": 0o777})
    rights = Permission("alice", "staff", 0o777)
    served.log_and_apply(
        Symlink(served.namespace.counters.last_inode_id + 1, "/l", "/a", 1, 1, rights)
    )
    for _ in range(cases // 20):
        await change(served, chance)
        for _ in range(20):
            await compare(served, methods, chance, met)
    return met


def test_looks_answer_as_the_usual_way_does() -> None:
    met = asyncio.run(play(1, CASES_IN_EACH_RUN))
    assert (
        min(met[name] for name in (*READS, "usual", "quick getFileInfo", "quick getListing")) > 20
    ), met


@pytest.mark.parametrize("seed", range(6))
async def test_a_page_of_many_kinds_is_the_usual_one(seed: int) -> None:
    """Names and numbers of each length, files alike and not, and between them what is rare."""
    chance, served = random.Random(seed), serve(settings=Settings(listing_limit=90))
    await served.mkdirs("/d")
    for number in range(200):
        name, kind = (
            f"{'né'[: seed % 3]}{'x' * chance.choice([0, 9, 130])}{number}",
            chance.random(),
        )
        if kind < 0.1:
            await served.mkdirs(f"/d/{name}")
            continue
        await served.touch(f"/d/{name}", replication=1 + (seed % 2 and number // 50))
        node = served.namespace.tree.root.children[b"d"].children[name.encode()]  # type: ignore[union-attr]
        assert isinstance(node, INodeFile)
        sizes = [chance.choice([0, 1, 127, 128, 1 << 35]) for _ in range(seed % 2 and number % 4)]
        node.blocks = tuple(Block(1 << 30, size, 1001) for size in sizes)
        node.set_times(chance.choice([0, 1, 1 << 41, (1 << 63) - 1]), chance.choice([0, 1 << 41]))
        if kind < 0.15:
            node.acl = (AclEntry(AclScope.ACCESS, AclType.USER, "bob", 5),)
    after, pages = b"", 0
    while True:
        fields: dict[str, Any] = {"src": "/d", "startAfter": after, "needLocation": False}
        request = GetListingRequestProto(**fields)
        found = quick_listing.listing(served.scene(SUPERUSER), request)
        usual = reads.get_listing(served.scene(SUPERUSER), request)
        assert found == usual.SerializeToString()
        pages += 1
        if not usual.dirList.remainingEntries:
            break
        after = usual.dirList.partialListing[-1].path
    assert pages == 3


async def test_a_page_says_by_which_policy_its_files_are_stored() -> None:
    """It is the folder's own where the files have none."""
    served = await prepared()
    await served.call("setStoragePolicy", src="/d", policyName="COLD")
    fields: dict[str, Any] = {"src": "/d", "startAfter": b"", "needLocation": False}
    found = look(served, "getListing", **fields)
    usual = reads.get_listing(served.scene(SUPERUSER), GetListingRequestProto(**fields))
    assert found == usual.SerializeToString()


async def test_a_page_is_as_closed_as_its_folder() -> None:
    served = serve()
    await served.mkdirs("/d")
    fields = {"startAfter": b"", "needLocation": False}
    for mode in (0o770, 0o771, 0o774):
        await served.call("setPermission", src="/d", permission={"perm": mode})
        assert look(served, "getListing", "alice", src="/d", **fields) is None
    await served.call("setPermission", src="/d", permission={"perm": 0o775})
    assert look(served, "getListing", "alice", src="/d", **fields) is not None


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_hundred_thousand_looks_answer_as_the_usual_way_does() -> None:
    for seed in range(10):
        asyncio.run(play(100 + seed, CASES // 10))


async def closed_gate(served: Served) -> None:
    served.gate.open = False


async def unknown_groups(served: Served) -> None:
    served.face.groups = SystemGroups()


async def undurable(served: Served) -> None:
    served.log.held = asyncio.Event()


async def lapsed_lease(served: Served) -> None:
    served.log.superseded = True


@pytest.mark.parametrize("wait", [closed_gate, unknown_groups, undurable, lapsed_lease])
@pytest.mark.parametrize("path", ["/f", "/d"], ids=["a file", "a folder"])
async def test_a_look_waits_for_nothing(wait: Callable[[Served], Any], path: str) -> None:
    served = await prepared()
    assert look(served, "getFileInfo", src=path) is not None
    await wait(served)
    assert look(served, "getFileInfo", src=path) is None
    assert look(served, LOCATIONS, src="/f", offset=0, length=1) is None


async def test_a_lease_that_ends_while_an_answer_is_computed_is_noticed() -> None:
    served = await prepared()

    def late() -> float:
        served.log.superseded = True
        return 0.0

    served.face.clock = late
    assert look(served, "getFileInfo", src="/f") is None


async def test_what_is_audited_is_not_looked_at() -> None:
    """A line is written of a call that is handled; a look would have none."""
    served = await prepared()
    lines: list[object] = []
    served.face.watch = ClientAudit(served.namespace, lines.extend, frozenset(), 128).watched
    methods = served.face.protocol().methods
    watched = [name for name, method in methods.items() if method.look is not None]
    assert "getFileInfo" not in watched
    rights = RIGHTS["ClientProtocol"]
    methods = replace(served.face, watch=lambda same, _: same).protocol().methods
    assert [name for name, one in methods.items() if one.look and rights[name].audited] == []


async def test_what_is_kept_of_files_holds_no_past_of_theirs() -> None:
    """Bad schedule: 4,096 files with snapshots were looked at, and stay in memory when they go."""
    served = await prepared()
    await served.take_snapshot("/d", "s0")
    await served.call("setPermission", src="/d/g", permission={"perm": 0o600})
    quick.parts_of.cache_clear()
    for path in ("/d/g", "/open", "/f", "/f"):
        assert look(served, "getFileInfo", src=path) is not None
    assert quick.parts_of.cache_info().currsize == 1, "of /f alone"


async def test_a_request_that_is_none_goes_the_usual_way() -> None:
    served = await prepared()
    for name in ("getFileInfo", "getListing", LOCATIONS):
        found = served.face.protocol().methods[name].look
        assert found is not None
        call = Call(CLIENT_PROTOCOL, name, b"client-of-16byte", -2, 0, SUPERUSER, None, "127.0.0.1")
        for data in (b"", b"\xff\xff", b"\x0a\x02\xff\xfe"):
            assert found(call, data) is None


async def test_a_link_on_the_way_is_no_short_way() -> None:
    served = await linked()
    for path in ("/link", "/link/x", "/deep"):
        assert look(served, "getFileInfo", src=path) is None
