"""Logging in by a delegation token over a real socket: the user is the token's, and no other."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from files.errors import Refused, Unreachable
from files.namenodes import CallLimits, Namenodes
from ha.conf.keys.security import Mode
from ha.conf.topology import HostPort
from ha.rpc import packets
from ha.rpc.frames import FrameSplitter, frame_of
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.rpc.proto.rpc_header_pb2 import IpcConnectionContextProto, RpcSaslProto
from ha.rpc.sasl.initiation import LoginToken
from ha.rpc.server import RpcServer
from ha.security.access_control import AccessControl
from ha.security.caller import Method
from ha.security.kerberos.admission import Admission
from ha.security.kerberos.auth_to_local import parse_rules
from ha.security.kerberos.own import OwnKerberos, log_in
from ha.security.sasl.digest_md5 import RPC_REALM, RPC_URI, DigestInitiator, Service
from ha.security.sasl.mechanism import Agreed, Challenge, Layer, Protection, SaslFailure
from ha.security.sasl.way import Way
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import FsPermissionProto, TokenProto
from namenode_sim.client_protocol.words.model import Settings, TokenRules
from namenode_sim.edits.admin_codec import TOKEN
from namenode_sim.edits.values import DelegationTokenIdentifier
from namenode_sim.namespace.state import Secrets
from namenode_sim.token_login import TokenLogins, offer_tokens
from tests.ha.rpc.test_tls import Unwritten
from tests.ha.rpc.wire import CLIENT, header
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

S = RpcSaslProto
NOBODY = 65534
SECONDS = 20


@dataclass(slots=True)
class Client:
    """A client of Hadoop RPC, written out."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    layer: Layer | None = None
    calls: int = 0

    async def answer(self) -> packets.CallAnswer:
        async with asyncio.timeout(SECONDS):
            length = int.from_bytes(await self.reader.readexactly(4), "big")
            answer = packets.decode_answer(await self.reader.readexactly(length))
        if self.layer is None or answer.call_id != packets.SASL_CALL_ID:
            return answer
        inner = FrameSplitter()
        inner.feed(self.layer.unwrap(packets.parse(S, answer.body).token))
        frame = inner.take_frame(1 << 20)
        assert frame is not None
        return packets.decode_answer(frame)

    def send(self, data: bytes) -> None:
        if self.layer is not None:
            token = self.layer.wrap(data)
            data = packets.encode_sasl_request(S(state=S.WRAP, token=token))
        self.writer.write(data)

    async def offers(self) -> list[S.SaslAuth]:
        self.send(packets.SASL_PREAMBLE + packets.encode_sasl_request(S(state=S.NEGOTIATE)))
        return list(packets.parse(S, (await self.answer()).body).auths)

    async def log_in(
        self, token: TokenProto, protection: Protection = Protection.AUTHENTICATION
    ) -> packets.CallAnswer:
        """Log in by a token; return the last answer of the negotiation."""
        offered = next(one for one in await self.offers() if one.method == "TOKEN")
        service = Service(RPC_URI, RPC_REALM, (protection,))
        user = b64encode(token.identifier).decode()
        initiator = DigestInitiator(service, user, b64encode(token.password))
        response = initiator.step(offered.challenge)
        assert not isinstance(response, Agreed)
        offered.ClearField("challenge")
        said = S(state=S.INITIATE, token=response.token, auths=[offered])
        self.send(packets.encode_sasl_request(said))
        answer = await self.answer()
        if answer.status is packets.Status.SUCCESS:
            agreed = initiator.step(packets.parse(S, answer.body).token)
            assert isinstance(agreed, Agreed)
            self.layer = agreed.layer
        return answer

    def greet(self, user: str | None = None) -> None:
        context = IpcConnectionContextProto(protocol=CLIENT_PROTOCOL)
        context.userInfo.SetInParent()
        if user is not None:
            context.userInfo.effectiveUser = user
        self.send(frame_of(header(-3), context.SerializeToString()))

    async def call(self, method: str, request: bytes) -> packets.CallAnswer:
        self.calls += 1
        key = packets.CallKey(CLIENT, self.calls, 0)
        self.send(packets.encode_call(key, CLIENT_PROTOCOL, method, request))
        return await self.answer()


@pytest.fixture
def logged_out_again() -> Iterator[None]:
    yield
    log_in(None)


MKDIRS = calls.MkdirsRequestProto(
    src="/made", masked=FsPermissionProto(perm=0o755), createParent=True
).SerializeToString()
GET = calls.GetDelegationTokenRequestProto(renewer="yarn").SerializeToString()


@dataclass(slots=True)
class Scene:
    served: Served
    port: int
    token: TokenProto
    active: bool = True

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()
            await writer.wait_closed()


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    served = serve(settings=Settings(tokens=TokenRules(issued=True)))
    await served.call("setPermission", src="/", permission=FsPermissionProto(perm=0o777))
    answer = await served.call("getDelegationToken", user="alice", renewer="yarn")
    assert isinstance(answer, calls.GetDelegationTokenResponseProto)
    access = AccessControl(
        Mode.AUTO, target="t", audit=Unwritten(), own_uid=1, uid_of=lambda *_: NOBODY
    )
    server = RpcServer([served.face.protocol()], access=access)
    found = Scene(served, await server.start("127.0.0.1", 0), answer.token)

    def secrets() -> Secrets | None:
        return served.namespace.secrets if found.active else None

    offer_tokens(access, secrets)
    logins = TokenLogins(secrets, tuple(Protection))  # those of Kerberos, which is not set up here
    access.ways = tuple(replace(way, make=logins.acceptor) for way in access.ways)
    try:
        yield found
    finally:
        await server.stop()


@pytest.mark.parametrize("protection", Protection)
async def test_the_user_is_the_tokens_in_all_layers(scene: Scene, protection: Protection) -> None:
    async with scene.client() as client:
        assert (await client.log_in(scene.token, protection)).status is packets.Status.SUCCESS
        assert (client.layer is None) == (protection is Protection.AUTHENTICATION)
        client.greet()
        assert (await client.call("mkdirs", MKDIRS)).status is packets.Status.SUCCESS
        refused = await client.call("getDelegationToken", GET)
        assert "only with kerberos or web authentication" in refused.message
    made = await scene.served.status("/made")
    assert made is not None
    assert made.owner == "alice"  # and not the user of the socket's other end


def held(token: TokenProto) -> LoginToken:
    name = b64encode(token.identifier).decode()
    return LoginToken("alice", name, b64encode(token.password))


async def test_our_own_client_logs_in_by_a_token_at_whichever_is_active(scene: Scene) -> None:
    places = [HostPort("127.0.0.1", 1), HostPort("127.0.0.1", scene.port)]
    async with Namenodes(places, user="hdfs", token=held(scene.token)) as namenodes:
        made = await namenodes.ask(
            calls.MkdirsResponseProto, src="/made", createParent=True,
            masked=FsPermissionProto(perm=0o755),
        )  # fmt: skip
        assert made.result
    status = await scene.served.status("/made")
    assert status is not None
    assert status.owner == "alice"


async def test_our_own_client_is_refused_at_once_with_a_token_that_is_none(scene: Scene) -> None:
    await scene.served.call("cancelDelegationToken", user="alice", token=scene.token)
    places = [HostPort("127.0.0.1", scene.port)]
    async with Namenodes(places, token=held(scene.token)) as namenodes:
        with pytest.raises(Refused, match="can't be found in cache"):
            await namenodes.ask(calls.GetFileInfoResponseProto, src="/")


async def test_our_own_client_needs_the_secret(scene: Scene) -> None:
    places = [HostPort("127.0.0.1", scene.port)]
    wrong = replace(held(scene.token), password=b"other")
    async with Namenodes(places, token=wrong) as namenodes:
        with pytest.raises(Refused, match="authentication failed"):
            await namenodes.ask(calls.GetFileInfoResponseProto, src="/")


async def test_our_own_client_gives_a_token_to_no_server_without_any(scene: Scene) -> None:
    server = RpcServer([scene.served.face.protocol()])
    port = await server.start("127.0.0.1", 0)
    limits = CallLimits(connect_seconds=2, attempt_seconds=2, total_seconds=2)
    places = [HostPort("127.0.0.1", port)]
    try:
        async with Namenodes(places, token=held(scene.token), limits=limits) as namenodes:
            with pytest.raises(Unreachable, match="fall back to SIMPLE"):
                await namenodes.ask(calls.GetFileInfoResponseProto, src="/")
    finally:
        await server.stop()


async def test_a_token_lets_its_holder_act_for_its_owner_alone(scene: Scene) -> None:
    for user in ("root", "hdfs", "nobody"):
        async with scene.client() as client:
            await client.log_in(scene.token)
            client.greet(user)
            refused = await client.answer()
            assert "doesn't match what the client claims to be" in refused.message
    async with scene.client() as client:
        await client.log_in(scene.token)
        client.greet("alice")
        assert (await client.call("mkdirs", MKDIRS)).status is packets.Status.SUCCESS


async def test_a_token_opens_no_protocol_of_daemons_or_administrators(scene: Scene) -> None:
    async with scene.client() as client:
        await client.log_in(scene.token)
        client.greet()
        request = calls.RefreshNodesRequestProto().SerializeToString()
        refused = await client.call("refreshNodes", request)
        assert refused.status is packets.Status.ERROR
        assert "Superuser privilege is required" in refused.message


async def test_refusals_have_javas_classes(scene: Scene) -> None:
    scene.active = False
    async with scene.client() as client:
        sent_on = await client.log_in(scene.token)
    assert sent_on.java_class == "org.apache.hadoop.ipc.StandbyException"
    scene.active = True
    wrong = TokenProto.FromString(scene.token.SerializeToString())
    wrong.password = bytes(20)
    async with scene.client() as client:
        refused = await client.log_in(wrong)
    assert refused.java_class == "javax.security.sasl.SaslException"
    assert refused.message == "authentication failed"
    await scene.served.call("cancelDelegationToken", user="alice", token=scene.token)
    async with scene.client() as client:
        cancelled = await client.log_in(scene.token)
    assert cancelled.java_class.endswith("SecretManager$InvalidToken")
    assert "can't be found in cache" in cancelled.message


async def test_who_has_only_tokens_for_others_goes_on_without(scene: Scene) -> None:
    """Java's clients speak SASL as soon as they hold any token."""
    async with scene.client() as client:
        offered = await client.offers()
        assert [one.method for one in offered] == ["TOKEN", "SIMPLE"]
        client.send(packets.encode_sasl_request(S(state=S.INITIATE, auths=[offered[1]])))
        client.greet("nobody")
        assert (await client.call("mkdirs", MKDIRS)).status is packets.Status.SUCCESS
    made = await scene.served.status("/made")
    assert made is not None
    assert made.owner == "nobody"
    async with scene.client() as client:
        await client.offers()
        client.send(packets.encode_sasl_request(S(state=S.INITIATE, auths=[offered[1]])))
        client.greet("alice")
        assert "alice" in (await client.answer()).message  # the kernel knows better, as ever


async def test_where_nothing_is_proved_a_caller_goes_on_without_a_token(scene: Scene) -> None:
    access = AccessControl(
        Mode.INSECURE, target="t", audit=Unwritten(), own_uid=1, uid_of=lambda *_: None
    )
    offer_tokens(access, lambda: scene.served.namespace.secrets)
    server = RpcServer([scene.served.face.protocol()], access=access)
    places = [HostPort("127.0.0.1", await server.start("127.0.0.1", 0))]
    try:
        async with Namenodes(places, user="bob") as namenodes:
            asked = await namenodes.ask(calls.GetFileInfoResponseProto, src="/")
        assert asked.fs.owner
    finally:
        await server.stop()


@pytest.mark.usefixtures("logged_out_again")
async def test_with_kerberos_tokens_come_before_tickets_and_names_have_its_rules() -> None:
    rules = parse_rules("RULE:[2:$1-$2](svc-.*)s/svc-/s-/ DEFAULT", "hadoop", "R")
    none = Admission()
    tickets = Way(Method.KERBEROS, "GSSAPI", "nn", "h", lambda: pytest.fail("made"), none.user_of)
    access = AccessControl(Mode.AUTO, target="t", audit=Unwritten(), own_uid=1)
    access.ways, access.admission = (tickets,), Admission(rules)
    wanted = (Protection.PRIVACY, Protection.INTEGRITY)
    log_in(OwnKerberos("nn/h@R", None, rules, wanted, ()))
    offer_tokens(access, lambda: None)
    tokens, second = list(access.ways)
    assert second is tickets
    assert access.admission.rules is rules
    assert (tokens.method, tokens.mechanism, tokens.protocol, tokens.server_id) == (
        Method.TOKEN, "DIGEST-MD5", "", "default",
    )  # fmt: skip
    assert tokens.speaks_first
    assert not tokens.in_thread, "the namespace is the loop's"
    challenge = tokens.make().step(b"")
    assert isinstance(challenge, Challenge)
    assert b'qop="auth-conf,auth-int"' in challenge.token

    def name(owner: str, real_user: str) -> str:
        token = DelegationTokenIdentifier(owner, "", real_user, 1, 2, 3, 4)
        return b64encode(TOKEN.write(token)).decode()

    assert tokens.user_of(name("svc/h@R", "")) == ("s-h", "")
    assert tokens.user_of(name("alice", "livy@R")) == ("alice", "livy")
    with pytest.raises(SaslFailure):
        tokens.user_of(name("alice@ELSEWHERE", ""))


def test_lists_of_the_operator_stay_when_tokens_are_offered() -> None:
    access = AccessControl(Mode.AUTO, target="t", audit=Unwritten(), own_uid=1)
    offer_tokens(access, lambda: None)
    assert access.admission == Admission()
    mine = Admission(own="hdfs")
    access.admission = mine
    offer_tokens(access, lambda: None)
    assert access.admission is mine
