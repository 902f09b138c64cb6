"""Delegation tokens at WebHDFS of a NameNode: whom they prove, and what a DataNode is sent."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs, urlsplit

import pytest

from ha.conf.keys.security import Mode
from ha.security.access_control import AccessControl
from ha.security.caller import Method
from ha.security.kerberos.admission import Admission
from hadoop import writable
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import FsPermissionProto, TokenProto
from hadoop.webhdfs import token_text
from namenode_sim.client_protocol.words.model import Settings, TokenRules
from namenode_sim.process import client_routes
from namenode_sim.process.client_routes import holder_of
from namenode_sim.token_login import offer_tokens
from namenode_sim.webhdfs import route
from tests.ha.rpc.test_tls import Unwritten
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve
from tests.namenode_sim.webhdfs.web_client import Answered, WebClient, web_client

NOBODY = 65534


@dataclass(slots=True)
class Takeover:
    """A gate behind which calls wait until this NameNode is the active."""

    waits: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def is_open(self) -> bool:
        return self.over.is_set()

    async def admit(self, method: str, *, writes: bool) -> None:
        self.waits.set()
        await self.over.wait()


@dataclass(slots=True)
class Scene:
    """A NameNode that issues tokens, and one of alice's; what the kernel says of callers is set."""

    served: Served
    access: AccessControl
    token: TokenProto
    client: WebClient | None = None

    async def ask(self, method: str, path: str, op: str, **query: object) -> Answered:
        assert self.client is not None
        return await self.client.ask(method, path, op, **{"user_name": None, **query})

    async def with_token(self, method: str, path: str, op: str, **query: object) -> Answered:
        text = token_text.encoded(self.token)
        return await self.ask(method, path, op, **{"delegation": text, **query})


@asynccontextmanager
async def scene(
    uid: int | None = None, mode: Mode = Mode.AUTO, gate: Takeover | None = None
) -> AsyncIterator[Scene]:
    served = serve(settings=Settings(tokens=TokenRules(issued=True)))
    datanodes_in_memory.with_datanodes(served)
    await served.call("setPermission", src="/", permission=FsPermissionProto(perm=0o777))
    answer = await served.call("getDelegationToken", user="alice", renewer="yarn")
    assert isinstance(answer, calls.GetDelegationTokenResponseProto)
    access = AccessControl(mode, target="t", audit=Unwritten(), own_uid=1, uid_of=lambda *_: uid)
    found = Scene(served, access, answer.token)
    offer_tokens(access, lambda: served.namespace.secrets)
    holders = holder_of(access, lambda: served.namespace.secrets, gate or served.gate)
    async with web_client(served, access, holder_of=holders) as found.client:
        yield found


def sent_on(answer: Answered) -> Mapping[str, list[str]]:
    """Return the parameters of the address at a DataNode."""
    assert answer.status == 307, answer.text
    return parse_qs(urlsplit(answer.headers["Location"]).query)


async def test_a_token_proves_its_owner_and_no_other() -> None:
    async with scene() as made:
        assert (await made.ask("PUT", "/d", "MKDIRS")).refusal[0] == 403, "nothing proves it"
        for named in ({}, {"user_name": "alice"}, {"doas": "alice"}):
            assert (await made.with_token("PUT", "/d", "MKDIRS", **named)).status == 200
        status = (await made.with_token("GET", "/d", "GETFILESTATUS")).json["FileStatus"]
        assert status["owner"] == "alice"
        for named in ({"user_name": "hdfs"}, {"doas": "hdfs"}):
            refused = await made.with_token("PUT", "/e", "MKDIRS", **named)
            assert refused.refusal == (403, "IOException")
            assert refused.message == "Usernames not matched: name=hdfs != expected=alice"
        refused = await made.with_token("PUT", "/", "SETPERMISSION", permission="700")
        assert refused.refusal == (403, "AccessControlException")


@pytest.mark.parametrize(
    ("altered", "said"),
    [
        ({"password": b"\0" * 20}, "InvalidToken"),
        ({"identifier": b"\0\5hdfs1\0\0"}, "InvalidToken"),
        ({"identifier": b""}, "InvalidToken"),
    ],
)
async def test_a_token_that_is_not_good_proves_nothing(
    altered: Mapping[str, bytes], said: str
) -> None:
    async with scene() as made:
        for field, value in altered.items():
            setattr(made.token, field, value)
        assert (await made.with_token("PUT", "/d", "MKDIRS")).refusal == (403, said)
        assert (await made.with_token("PUT", "/d", "CREATE")).refusal == (403, said)
        refused = await made.ask("PUT", "/d", "MKDIRS", delegation="no token")
        assert refused.refusal == (400, "IllegalArgumentException")
        info = await made.served.call("getFileInfo", src="/d")
        assert not info.ListFields(), "nothing was made"


async def test_a_cancelled_token_proves_nothing_any_more() -> None:
    async with scene() as made:
        assert (await made.with_token("PUT", "/d", "MKDIRS")).status == 200
        await made.served.call("cancelDelegationToken", user="alice", token=made.token)
        assert (await made.with_token("PUT", "/e", "MKDIRS")).refusal == (403, "InvalidToken")


async def test_a_standby_holds_back_a_token_until_it_knows_whether_that_is_good() -> None:
    """Bad schedule: a token is cancelled while a request with it waits for a takeover."""
    takeover = Takeover()
    async with asyncio.timeout(60), scene(gate=takeover) as made:
        waiting = asyncio.create_task(made.with_token("PUT", "/d", "MKDIRS"))
        await takeover.waits.wait()
        made.served.namespace.secrets.tokens.clear()
        takeover.over.set()
        assert (await waiting).refusal == (403, "InvalidToken")


async def test_a_standby_holds_back_some_tokens_that_it_does_not_know_and_sends_on_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bad schedule: the active dies before the standby has read the edit of a new token."""
    monkeypatch.setattr(client_routes, "MOST_UNKNOWN", 1)
    takeover = Takeover()
    async with asyncio.timeout(60), scene(gate=takeover) as made:
        tokens = made.served.namespace.secrets.tokens
        unread = dict(tokens)
        tokens.clear()
        waiting = asyncio.create_task(made.with_token("PUT", "/d", "MKDIRS"))
        await takeover.waits.wait()
        refused = await made.with_token("PUT", "/d", "MKDIRS")
        assert refused.refusal == (403, "StandbyException")
        assert "can't be found in cache" in refused.message
        tokens.update(unread)
        takeover.over.set()
        assert (await waiting).status == 200
        takeover.over.clear()
        tokens.clear()
        takeover.waits.clear()
        again = asyncio.create_task(made.with_token("PUT", "/e", "MKDIRS"))
        await takeover.waits.wait()
        takeover.over.set()
        assert (await again).refusal == (403, "InvalidToken")


async def test_an_access_list_closes_the_protocol_to_a_token_too() -> None:
    async with scene() as made:
        for list_of, closed in (("acl", "bob"), ("hosts", "192.0.2.1")):
            made.access.admission = Admission(
                policy={f"security.client.protocol.{list_of}": closed}
            )
            refused = await made.with_token("PUT", "/d", "MKDIRS")
            assert refused.refusal == (403, "AccessControlException")
            assert "alice" in refused.message
        opened = {"security.client.protocol.hosts": "127.0.0.1"}
        made.access.admission = Admission(policy=opened)
        assert (await made.with_token("PUT", "/d", "MKDIRS")).status == 200


async def test_a_datanode_is_sent_the_token_and_no_name() -> None:
    async with scene() as made:
        sent = sent_on(await made.with_token("PUT", "/f", "CREATE"))
        assert token_text.decoded(sent["delegation"][0]) == made.token
        assert "user.name" not in sent


async def test_a_proven_caller_without_a_token_is_given_one() -> None:
    async with scene(NOBODY) as made:
        sent = sent_on(await made.ask("PUT", "/f", "CREATE"))
        assert "user.name" not in sent
        made.token = token_text.decoded(sent["delegation"][0])
        assert writable.read_text(made.token.identifier, 1)[0] == "nobody"
        assert (await made.with_token("PUT", "/d", "MKDIRS")).status == 200
        refused = await made.with_token("GET", "/", "GETDELEGATIONTOKEN")
        assert refused.refusal == (403, "IOException"), "one that is stolen would never end"


async def test_a_caller_is_given_its_last_token_again_while_that_is_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each new one is an edit, and counts against the user's limit until it ends."""
    async with scene(NOBODY) as made:

        async def given(**query: object) -> TokenProto:
            sent = sent_on(await made.ask("PUT", "/f", "CREATE", **query))
            return token_text.decoded(sent["delegation"][0])

        before = len(made.served.log.frames)
        first = await given()
        logged = len(made.served.log.frames)
        assert logged > before
        assert await given() == first
        assert len(made.served.log.frames) == logged
        await made.served.call("cancelDelegationToken", user="nobody", token=first)
        second = await given()
        assert second != first
        monkeypatch.setattr(route, "MOST_GIVEN", 1)
        made.access.policy = replace(made.access.policy, own_uid=NOBODY)
        others = await given(user_name="carol")
        assert writable.read_text(others.identifier, 1)[0] == "carol"
        third = await given()
        assert third != second, "no more than the limit are kept"
        monkeypatch.setattr(route, "REUSED_SECONDS", 0.0)
        assert await given() != third


async def test_strict_sends_on_those_alone_for_whom_a_datanode_can_show_a_token() -> None:
    async with scene(NOBODY, mode=Mode.STRICT) as made:
        made.access.policy = replace(made.access.policy, certificates=True)
        for answer in (
            await made.with_token("PUT", "/f", "CREATE"),
            await made.ask("PUT", "/f", "CREATE"),
        ):
            assert "delegation" in sent_on(answer)
        async with web_client(made.served, made.access) as plain:
            refused = await plain.ask("PUT", "/f", "CREATE", user_name=None)
            assert refused.refusal == (403, "AccessControlException")
            assert "in strict mode" in refused.message


async def test_a_name_that_nothing_proves_is_sent_on_as_one() -> None:
    async with scene(mode=Mode.INSECURE) as made:
        sent = sent_on(await made.ask("PUT", "/f", "CREATE", user_name="carol"))
        assert sent["user.name"] == ["carol"]
        assert "delegation" not in sent


async def test_with_kerberos_the_kernels_word_is_no_proof_as_over_rpc() -> None:
    """Java's client on this host would act as the user of its process, ticket or not."""
    async with scene(0) as made:
        assert (await made.ask("PUT", "/d", "MKDIRS", user_name="alice")).status == 200
        (tokens,) = made.access.ways
        made.access.ways = (tokens, replace(tokens, method=Method.KERBEROS))
        for named in ("alice", None):
            refused = await made.ask("PUT", "/e", "MKDIRS", user_name=named)
            assert refused.refusal == (403, "AccessControlException")
        assert (await made.with_token("PUT", "/e", "MKDIRS")).status == 200


async def test_where_no_tokens_are_issued_they_count_for_nothing() -> None:
    async with scene(NOBODY) as made, web_client(made.served, made.access) as plain:
        text = token_text.encoded(made.token)
        made_by = await plain.ask("PUT", "/d", "MKDIRS", user_name=None, delegation=text)
        assert made_by.status == 200
        sent = sent_on(await plain.ask("PUT", "/f", "CREATE", user_name=None, delegation=text))
        assert sent["user.name"] == ["nobody"]
        assert "delegation" not in sent
