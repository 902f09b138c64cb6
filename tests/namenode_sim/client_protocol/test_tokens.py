"""Delegation tokens: given, renewed, cancelled and ended, on the active and on its successor."""

import asyncio
import hmac
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import pytest

from ha.rpc.errors import RemoteFault
from ha.security.caller import Method
from ha.security.kerberos.own import short_name
from ha.security.sasl.digest_md5 import RPC_REALM, RPC_URI, DigestInitiator, Service
from ha.security.sasl.mechanism import Agreed, Challenge, Protection, Proven, SaslFailure
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import TokenProto
from namenode_sim.blocks.safemode import enter
from namenode_sim.client_protocol.words.model import Settings, TokenRules
from namenode_sim.edits import ops
from namenode_sim.edits.values import DelegationKey
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.state import Secrets
from namenode_sim.process.duties import MOST_EXPIRED, remove_expired_tokens
from namenode_sim.token_login import TokenLogins
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

HOUR, DAY = 3_600_000, 24 * 3_600_000
BEGIN = 1_700_000_000_000
RULES = TokenRules(issued=True, key_ms=12 * HOUR, short_name=short_name)
IO = "java.io.IOException"
DENIED = "org.apache.hadoop.security.AccessControlException"
INVALID = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
STANDBY = "org.apache.hadoop.ipc.StandbyException"


@dataclass(slots=True)
class Scene:
    """One NameNode, at a time that the test sets."""

    rules: TokenRules = RULES
    now_ms: int = BEGIN
    active: bool = True
    namespace: Namespace | None = None
    served: Served = field(init=False)

    def __post_init__(self) -> None:
        settings = replace(Settings(), tokens=self.rules)
        self.served = serve(settings=settings, namespace=self.namespace)
        self.served.face.wall_clock = lambda: self.now_ms / 1000

    async def get(
        self,
        user: str = "alice",
        renewer: str = "yarn",
        *,
        real_user: str | None = None,
        proof: Method = Method.PEER_UID,
    ) -> TokenProto:
        answer = await self.served.call(
            "getDelegationToken", user=user, renewer=renewer, real_user=real_user, proof=proof
        )
        assert isinstance(answer, calls.GetDelegationTokenResponseProto)
        assert answer.HasField("token")
        return answer.token

    async def renew(
        self, token: TokenProto, user: str = "yarn", *, proof: Method = Method.PEER_UID
    ) -> int:
        answer = await self.served.call("renewDelegationToken", user=user, token=token, proof=proof)
        assert isinstance(answer, calls.RenewDelegationTokenResponseProto)
        return answer.newExpiryTime

    async def cancel(
        self, token: TokenProto, user: str = "alice", *, proof: Method = Method.PEER_UID
    ) -> None:
        await self.served.call("cancelDelegationToken", user=user, token=token, proof=proof)

    def log_in(self, token: TokenProto) -> tuple[str, str]:
        """Log in by a token as a client does; return the user and the real user."""
        secrets = self.served.namespace.secrets
        logins = TokenLogins(lambda: secrets if self.active else None, now_ms=lambda: self.now_ms)
        acceptor = logins.acceptor()
        challenge = acceptor.step(b"")
        assert isinstance(challenge, Challenge)
        client = Service(RPC_URI, RPC_REALM, tuple(Protection))
        user = b64encode(token.identifier).decode()
        response = DigestInitiator(client, user, b64encode(token.password)).step(challenge.token)
        assert not isinstance(response, Agreed)
        proven = acceptor.step(response.token)
        assert isinstance(proven, Proven)
        return logins.user_of(proven.name)

    def successor(self) -> "Scene":
        """Return the NameNode that has read what this one wrote, and is active after it."""
        standby = self.served.log.replayed()
        assert standby.secrets == self.served.namespace.secrets
        assert standby.secrets.tokens_of == self.served.namespace.secrets.tokens_of
        return Scene(self.rules, self.now_ms, namespace=standby)


async def refused(action: Awaitable[object], java_class: str, words: str) -> None:
    with pytest.raises(RemoteFault, match=words) as refusal:
        await action
    assert refusal.value.java_class == java_class


def login_refused(scene: Scene, token: TokenProto, java_class: str, words: str) -> None:
    with pytest.raises(SaslFailure, match=words) as refusal:
        scene.log_in(token)
    assert refusal.value.java_class == java_class


# ---- what a token is ----


async def test_a_token_has_hadoops_bytes_and_is_signed_by_the_key_in_the_edits() -> None:
    scene = Scene()
    token = await scene.get(renewer="yarn", real_user="livy")
    key, given = scene.served.log.ops()
    assert isinstance(key, ops.UpdateMasterKey)
    assert key.key.key_id == 1
    assert key.key.expiry_date == BEGIN + 7 * DAY + 12 * HOUR
    assert isinstance(given, ops.GetDelegationToken)
    assert given.expiry_time == BEGIN + DAY
    assert token.identifier == (
        b"\x00\x05alice\x04yarn\x04livy"
        + b"\x8a" + BEGIN.to_bytes(6, "big") + b"\x8a" + (BEGIN + 7 * DAY).to_bytes(6, "big")
        + b"\x01\x01"
    )  # fmt: skip
    assert key.key.key is not None
    assert len(key.key.key) == 20
    assert token.password == hmac.digest(key.key.key, token.identifier, "sha1")
    assert (token.kind, token.service) == ("HDFS_DELEGATION_TOKEN", "")
    assert scene.log_in(token) == ("alice", "livy")


async def test_a_user_that_acts_for_itself_has_no_real_user() -> None:
    scene = Scene()
    assert scene.log_in(await scene.get(real_user="alice")) == ("alice", "")


async def test_two_tokens_are_never_the_same() -> None:
    scene = Scene()
    one, other = await scene.get(), await scene.get()
    assert one.identifier != other.identifier
    assert [type(op) for op in scene.served.log.ops()] == [
        ops.UpdateMasterKey, ops.GetDelegationToken, ops.GetDelegationToken,
    ]  # fmt: skip


@pytest.mark.parametrize("shift", [12 * HOUR, 30 * DAY, -12 * HOUR])
async def test_a_key_signs_for_its_time_and_its_tokens_live_on(shift: int) -> None:
    scene = Scene()
    old = await scene.get()
    scene.now_ms += 12 * HOUR - 1
    await scene.get()
    scene.now_ms = BEGIN + shift
    new = await scene.get()
    made = [op.key.key_id for op in scene.served.log.ops() if isinstance(op, ops.UpdateMasterKey)]
    assert made == [1, 2]
    assert scene.log_in(new) == ("alice", "")
    if shift <= DAY:
        assert scene.log_in(old) == ("alice", "")


async def test_a_key_without_bytes_signs_nothing() -> None:
    scene = Scene()
    expiry = BEGIN + 7 * DAY + 12 * HOUR
    scene.served.log_and_apply(ops.UpdateMasterKey(DelegationKey(5, expiry, None)))
    token = await scene.get()
    assert scene.log_in(token) == ("alice", "")
    assert scene.served.namespace.secrets.current_key_id == 6


async def test_none_are_issued_without_kerberos() -> None:
    scene = Scene(TokenRules())
    answer = await scene.served.call("getDelegationToken", renewer="yarn")
    assert answer == calls.GetDelegationTokenResponseProto()
    token = TokenProto(identifier=b"", password=b"", kind="", service="")
    await refused(scene.renew(token), INVALID, "issues no delegation tokens")
    await refused(scene.cancel(token), INVALID, "issues no delegation tokens")
    assert scene.served.log.ops() == []


@pytest.mark.parametrize("proof", Method)
@pytest.mark.parametrize("proven_only", [False, True])
async def test_a_token_gets_no_token_and_renews_none(proof: Method, proven_only: bool) -> None:
    scene = Scene(replace(RULES, proven_only=proven_only))
    token = await scene.get()
    edits = len(scene.served.log.frames)
    if proof is Method.TOKEN or (proof is Method.SIMPLE and proven_only):
        words = "only with kerberos or web authentication"
        await refused(scene.get(proof=proof), IO, f"issued {words}")
        await refused(scene.renew(token, proof=proof), IO, f"renewed {words}")
        assert len(scene.served.log.frames) == edits
    else:
        await scene.get(proof=proof)
        await scene.renew(token, proof=proof)
    await scene.cancel(token, proof=proof)  # as in Hadoop: a job ends its own token


async def test_only_the_renewer_renews() -> None:
    scene = Scene()
    token, nobodys = await scene.get(), await scene.get(renewer="")
    for user in ("alice", "hdfs", "mallory"):
        await refused(scene.renew(token, user), DENIED, f"{user} tries .* non-matching renewer")
    await refused(scene.renew(nobodys, "hdfs"), DENIED, "without a renewer")
    scene.now_ms += HOUR
    assert await scene.renew(token) == BEGIN + HOUR + DAY


async def test_a_token_is_renewed_until_its_last_day_and_no_longer() -> None:
    scene = Scene()
    token = await scene.get()
    scene.now_ms += 6 * DAY + HOUR
    assert await scene.renew(token) == BEGIN + 7 * DAY
    scene.now_ms = BEGIN + 7 * DAY
    assert await scene.renew(token) == BEGIN + 7 * DAY
    assert scene.log_in(token) == ("alice", "")
    scene.now_ms += 1
    login_refused(scene, token, INVALID, "is expired")
    await refused(scene.renew(token), INVALID, "tried to renew an expired token")


async def test_a_token_that_was_altered_is_not_renewed() -> None:
    scene = Scene()
    token = await scene.get()
    wrong = replace_fields(token, password=bytes(20))
    await refused(scene.renew(wrong), DENIED, "with wrong password")
    for raw in (b"", b"\x01", token.identifier + b"\0", token.identifier[:-1], bytes(3000)):
        await refused(scene.renew(replace_fields(token, identifier=raw)), INVALID, "de-serialize")
    other = replace_fields(token, identifier=token.identifier[:-1] + b"\x07")
    await refused(scene.renew(other), INVALID, "Unable to find master key for keyId=7")
    await scene.cancel(token)
    await refused(scene.renew(token), INVALID, "Renewal request for unknown token")


async def test_a_token_without_a_renewer_is_cancelled_by_its_owner_alone() -> None:
    scene = Scene()
    token = await scene.get(renewer="")
    await refused(scene.cancel(token, ""), DENIED, "not authorized")
    await scene.cancel(token)


# ---- logging in ----


async def test_what_is_not_the_token_does_not_log_in() -> None:
    scene = Scene()
    token = await scene.get()
    wrong = replace_fields(token, password=token.password[:-1] + b"\0")
    login_refused(scene, wrong, "javax.security.sasl.SaslException", "does not know the password")
    other = replace_fields(token, identifier=token.identifier.replace(b"alice", b"admin"))
    login_refused(scene, other, INVALID, "can't be found in cache")
    for raw in (b"\x01", token.identifier + b"\0", token.identifier[:-1]):
        login_refused(scene, replace_fields(token, identifier=raw), INVALID, "de-serialize")
    scene.now_ms += DAY + 1
    login_refused(scene, token, INVALID, "is expired")


async def test_a_standby_sends_clients_on() -> None:
    scene = Scene()
    token = await scene.get()
    scene.active = False
    login_refused(scene, token, STANDBY, "not supported in state standby")


def test_a_name_that_is_no_identifier_is_refused() -> None:
    logins = TokenLogins(Secrets)
    for name in ("alice", "not base64!", "AAAA"):
        with pytest.raises(SaslFailure) as refusal:
            logins.user_of(name)
        assert refusal.value.java_class == INVALID


# ---- through failovers, and their end ----


async def test_a_successor_goes_on_with_keys_and_tokens() -> None:
    first = Scene()
    token, gone = await first.get(), await first.get()
    await first.renew(token)
    await first.cancel(gone)
    second = first.successor()
    assert second.log_in(token) == ("alice", "")
    login_refused(second, gone, INVALID, "can't be found in cache")
    third = await second.get("bob")
    secrets = second.served.namespace.secrets
    assert (secrets.token_sequence_number, secrets.current_key_id) == (3, 1)
    await second.cancel(token)
    assert second.log_in(third) == ("bob", "")


async def test_tokens_that_were_not_renewed_are_removed_by_edits() -> None:
    scene = Scene()
    renewed, left = await scene.get(), await scene.get()
    scene.now_ms += HOUR
    await scene.renew(renewed)
    scene.now_ms = BEGIN + DAY
    assert remove_expired_tokens(scene.served.face) == 0
    scene.now_ms += 1
    assert remove_expired_tokens(scene.served.face) == 1
    assert remove_expired_tokens(scene.served.face) == 0
    assert isinstance(scene.served.log.ops()[-1], ops.CancelDelegationToken)
    successor = scene.successor()
    successor.log_in(renewed)
    login_refused(successor, left, INVALID, "can't be found in cache")


async def test_ends_are_written_some_at_a_time_and_none_in_safe_mode() -> None:
    scene = Scene()
    for _ in range(MOST_EXPIRED + 1):
        await scene.get()
    scene.now_ms += 2 * DAY
    cluster = scene.served.cluster
    before = cluster.safe_mode
    cluster.set_safe_mode(enter(before))
    assert remove_expired_tokens(scene.served.face) == 0
    cluster.set_safe_mode(before)
    assert remove_expired_tokens(scene.served.face) == MOST_EXPIRED
    assert remove_expired_tokens(scene.served.face) == 1


async def test_no_token_changes_in_safe_mode() -> None:
    scene = Scene()
    token = await scene.get()
    scene.served.cluster.set_safe_mode(enter(scene.served.cluster.safe_mode))
    attempts: dict[str, Callable[[], Awaitable[object]]] = {
        "Cannot issue": scene.get,
        "Cannot renew": lambda: scene.renew(token),
        "Cannot cancel": lambda: scene.cancel(token),
    }
    for words, attempt in attempts.items():
        with pytest.raises(RemoteFault, match=f"{words} delegation token"):
            await attempt()
    scene.log_in(token)


async def test_an_answer_waits_until_its_edits_are_durable() -> None:
    scene = Scene()
    scene.served.log.held = asyncio.Event()
    getting = asyncio.ensure_future(scene.get())
    while not scene.served.log.waited_for:
        await asyncio.sleep(0)
    assert not getting.done()
    assert scene.served.log.waited_for == [2]
    scene.served.log.held.set()
    assert scene.log_in(await getting) == ("alice", "")


def replace_fields(token: TokenProto, **fields: bytes) -> TokenProto:
    changed = TokenProto.FromString(token.SerializeToString())
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed
