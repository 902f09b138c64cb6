"""GET /fsck: which names are believed, how an answer ends, and what it is not to hold up."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import aiohttp
import pytest

from ha.conf.keys.security import Mode
from ha.daemon.http.endpoint import Endpoint
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import STANDBY_EXCEPTION
from ha.security.access_control import AccessControl
from namenode_sim.blocks.needed import Priority
from namenode_sim.process import fsck_route
from namenode_sim.process.fsck_route import FsckRoute
from tests.ha.rpc.test_tls import Unwritten
from tests.namenode_sim.client_protocol import test_fsck
from tests.namenode_sim.client_protocol.test_fsck import Site, losing

NOBODY = 65534


@asynccontextmanager
async def asking(here: Site, access: AccessControl | None = None) -> AsyncIterator["Caller"]:
    routes = [FsckRoute(here.served.face, here.redundancy, access).route()]
    endpoint = Endpoint(status=dict, healthy=lambda: None, access=access, routes=lambda: routes)
    async with asyncio.timeout(30):
        port = await endpoint.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
                yield Caller(session)
        finally:
            await endpoint.stop()


class Caller:
    """Asks as DFSck does: as the superuser, where no other user is named."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def ask(self, **query: str) -> tuple[int, str]:
        async with self.session.get("/fsck?" + urlencode(query)) as answer:
            return answer.status, await answer.text()

    async def text(self, **query: str) -> str:
        status, text = await self.ask(**{"ugi": "hdfs", **query})
        assert status == 200
        return text


@pytest.mark.row("B30", because="each test of the report, its codes and lists is one of its cases")
async def test_the_report_begins_and_ends_as_dfsck_expects_it() -> None:
    async with asking(await test_fsck.site()) as caller:
        text = await caller.text(path="/d", files="1")
        assert text.startswith("FSCK started by hdfs (auth:SIMPLE) from /127.0.0.1 for path /d at ")
        assert "\nFSCK ended at " in text
        assert text.endswith(" milliseconds\n\n\nThe filesystem under path '/d' is HEALTHY")
        gone = await caller.text(path="/gone")
        assert gone.endswith("\n\nPath '/gone' does not exist")
        assert await caller.ask(path="/gone", ugi="hdfs", form="json") == (
            404,
            json.dumps({"error": "Path '/gone' does not exist"}),
        )


@pytest.mark.row("B30")
@pytest.mark.parametrize("flag", ["move", "delete"])
async def test_repairs_are_refused_and_change_nothing(flag: str) -> None:
    here = await test_fsck.site()
    losing("d1", "d2", "d3")(here.served, here.block)
    async with asking(here) as caller:
        text = await caller.text(path="/", **{flag: "1"})
        assert "nothing was changed" in text
        assert text.endswith("\n\nFsck on path '/' FAILED")
        assert (await caller.text(path="/")).endswith("is CORRUPT")
    assert await here.served.status("/d/f") is not None


async def test_a_caller_that_may_not_read_all_gets_no_verdict() -> None:
    here = await test_fsck.site()
    await here.served.mkdirs("/d/closed", mode=0o700)
    async with asking(here) as caller:
        text = await caller.text(path="/", ugi="carol")
        assert "Permission denied: user=carol, access=READ_EXECUTE" in text
        assert text.endswith("\n\nFsck on path '/' FAILED")
        assert (await caller.ask(path="/", ugi="carol", form="json"))[0] == 403
        assert (await caller.text(path="/d/f", ugi="carol")).endswith("is HEALTHY")
        await here.served.call("setPermission", src="/d/f", permission={"perm": 0o600})
        assert 'access=READ, inode="/d/f"' in await caller.text(path="/d/f", ugi="carol")


async def test_a_standby_and_one_that_was_superseded_give_no_verdict() -> None:
    here = await test_fsck.site()
    async with asking(here) as caller:
        here.served.log.superseded = True
        text = await caller.text(path="/")
        assert text.endswith("superseded\n\n\nFsck on path '/' FAILED")
        block = {"blockId": str(here.block.blockId)}
        assert "Block belongs to" not in await caller.text(**block)
        for query in ({"path": "/"}, block):
            assert (await caller.ask(**query, ugi="hdfs", form="json"))[0] == 503
        here.served.face.gate = Closed()
        text = await caller.text(path="/")
        assert text.endswith("ask the active NameNode\n\n\nFsck on path '/' FAILED")
        assert "Status:" not in text
        assert (await caller.ask(path="/", form="json"))[0] == 503


class Closed:
    """The gate of a standby."""

    def is_open(self) -> bool:
        return False

    async def admit(self, method: str, *, writes: bool) -> None:
        raise RemoteFault(STANDBY_EXCEPTION, "ask the active NameNode")


async def test_a_failover_during_the_check_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is served from the same loop, so it reads while the check goes on."""
    monkeypatch.setattr(fsck_route, "SLICE_SECONDS", 0.0)
    here = await test_fsck.site()
    for number in range(300):
        await here.served.touch(f"/d/{number}")
    async with (
        asking(here) as caller,
        caller.session.get("/fsck?ugi=hdfs&path=/&files=1") as answer,
    ):
        assert (await answer.content.readany()).startswith(b"FSCK started")
        here.served.cluster.term += 1
        text = (await answer.text()).rstrip()
    assert text.endswith("\n\n\nFsck on path '/' FAILED")
    assert "the active no longer" in text


async def test_checks_that_failed_make_room_for_others() -> None:
    async with asking(await test_fsck.site()) as caller:
        for _ in range(fsck_route.MOST_AT_ONCE + 1):
            assert "FAILED" in await caller.text(path="relative")
            assert (await caller.ask(path="/", form="json", move="1", ugi="hdfs"))[0] == 503
        assert (await caller.text(path="/")).endswith("is HEALTHY")


async def test_not_all_checks_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsck_route, "MOST_AT_ONCE", 0)
    async with asking(await test_fsck.site()) as caller:
        status, text = await caller.ask(path="/")
    assert (status, text) == (503, "0 checks run already: try again")


#   the mode, the kernel's word, what it says that it is; the status, and as whom it was answered
CALLERS = {
    "insecure, a name": (Mode.INSECURE, None, "alice", 200, "alice"),
    "insecure, no name": (Mode.INSECURE, None, "", 200, "dr.who"),
    "permissive, another machine": (Mode.PERMISSIVE, None, "alice", 200, "alice"),
    "strict, its own name": (Mode.STRICT, NOBODY, "nobody", 200, "nobody"),
    "strict, no name": (Mode.STRICT, NOBODY, "", 200, "nobody"),
    "strict, another's name": (Mode.STRICT, NOBODY, "hdfs", 403, "user hdfs is not nobody"),
    "strict, root for another": (Mode.STRICT, 0, "hdfs", 200, "hdfs"),
    "strict, no proof": (Mode.STRICT, None, "hdfs", 401, "nothing proves who calls"),
}


@pytest.mark.parametrize("key", ["ugi", "user.name"])
@pytest.mark.parametrize(("mode", "uid", "name", "status", "said"), CALLERS.values(), ids=CALLERS)
async def test_a_name_is_believed_where_rpc_would_believe_it(
    mode: Mode, uid: int | None, name: str, status: int, said: str, key: str
) -> None:
    access = AccessControl(
        mode, target="nn1", audit=Unwritten(), own_uid=1, uid_of=lambda *_: uid,
        kernel_reports_uids=uid is not None,
    )  # fmt: skip
    async with asking(await test_fsck.site(), access) as caller:
        query = {key: name} if name else {}
        found, text = await caller.ask(path="/", **query)
        wanted = f"FSCK started by {said} (auth:SIMPLE)" if status == 200 else said
        assert (found, wanted in text) == (status, True)


@pytest.mark.row("B30")
async def test_blocks_are_found_by_their_names_by_readers_of_their_files() -> None:
    here = await test_fsck.site()
    name = f"blk_{here.block.blockId}"
    await here.served.call("setPermission", src="/d", permission={"perm": 0o700})
    async with asking(here) as caller:
        text = await caller.text(blockId=f"{name} x blk_7")
        assert f"\nBlock Id: {name}\nBlock belongs to: /d/f\nNo. of Expected Replica: 3\n" in text
        assert "\nBlock replica on datanode/rack: d1/r1 is HEALTHY\n" in text
        assert "\nIncorrect blockId format: x\n" in text
        assert text.endswith("\nBlock blk_7 does not exist\n")
        assert "Incorrect blockId format: \n" in await caller.text(blockId="")
        status, said = await caller.ask(ugi="hdfs", blockId=str(here.block.blockId), form="json")
        (one,) = json.loads(said)["blocks"]
        assert (status, one["path"], one["live"]) == (200, "/d/f", 3)
        for block in (name, "blk_7"):
            status, said = await caller.ask(ugi="carol", blockId=block, form="json")
            assert status == 403, said
        assert (await caller.ask(ugi="hdfs", blockId="x", form="json"))[0] == 404


@pytest.mark.row("B30")
async def test_missing_blocks_are_listed_page_by_page() -> None:
    here = await test_fsck.site()
    here.served.cluster.blocks.needed.put(
        test_fsck.slot_of(here.served, here.block), Priority.MISSING
    )
    async with asking(here) as caller:
        text = await caller.text(path="/d", listcorruptfileblocks="1")
        assert f"Cookie:\t1\nblk_{here.block.blockId}\t/d/f\n" in text
        assert text.endswith("\n\nThe filesystem under path '/d' has 1 CORRUPT files\n")
        more = await caller.text(path="/d", listcorruptfileblocks="1", startblockafter="1")
        assert more.endswith("has no more CORRUPT files\n")
        other = await caller.text(path="/d", listcorruptfileblocks="1", ugi="carol")
        assert "Superuser privilege is required" in other
