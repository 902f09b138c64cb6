"""Delegation tokens and the keys that sign them: what may be done with them, as edits.  Pure.

The state is the namespace's ``Secrets``, which edits change on the active and on standbys alike.
A token's password is the HMAC-SHA1 of its identifier under a key.  The bytes are those of Hadoop's
``DelegationTokenSecretManager``, and so are the texts.

See docs/reference/delegation-tokens.md.
"""

import hmac
from collections.abc import Callable, Iterator
from typing import Final

from ha.record import dataclass
from ha.rpc.java_names import INVALID_TOKEN
from ha.security.kerberos.auth_to_local import NoShortName
from namenode_sim.client_protocol.words.errors import FsError, denied, io_error
from namenode_sim.client_protocol.words.model import TokenRules
from namenode_sim.edits import ops
from namenode_sim.edits.admin_codec import TOKEN
from namenode_sim.edits.values import DelegationKey, DelegationTokenIdentifier
from namenode_sim.namespace.state import Secrets

KIND: Final = "HDFS_DELEGATION_TOKEN"
MAX_IDENTIFIER_BYTES: Final = 2048
"""In base64 it has to fit in a SASL response of 4,096 bytes."""
MAX_OF_OWNER: Final = 100_000
"""Tokens of one user that have not ended: each stays in memory, and in every image."""
MAX_NUMBER: Final = 0x7FFFFFFF
_KEY_BYTES: Final = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """A token that is asked for; ``real_user`` is the one who acts for the owner, or empty."""

    owner: str
    renewer: str
    real_user: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A token as a caller shows it."""

    identifier: bytes
    password: bytes


def invalid(message: str) -> FsError:
    """Return an InvalidToken, upon which clients ask for a new token or give up."""
    return FsError(INVALID_TOKEN, message)


def read_identifier(raw: bytes) -> DelegationTokenIdentifier:
    """Return what an identifier says; raise FsError (InvalidToken) where it says nothing."""
    token: DelegationTokenIdentifier
    try:
        token, end = TOKEN.read(raw, 0)
    except (ValueError, IndexError) as problem:
        raise invalid(f"Can't de-serialize tokenIdentifier: {problem}") from problem
    if end != len(raw) or end > MAX_IDENTIFIER_BYTES:
        raise invalid(f"Can't de-serialize tokenIdentifier: it has {len(raw)} bytes")
    return token


def as_text(token: DelegationTokenIdentifier) -> str:
    """Return how Hadoop's log and exceptions show a token."""
    return (
        f"(token for {token.owner}: {KIND} owner={token.owner}, renewer={token.renewer}, "
        f"realUser={token.real_user}, issueDate={token.issue_date}, maxDate={token.max_date}, "
        f"sequenceNumber={token.sequence_number}, masterKeyId={token.master_key_id})"
    )


def signed(identifier: bytes, secret: bytes) -> bytes:
    """Return the password of a token."""
    return hmac.digest(secret, identifier, "sha1")


def _secret(secrets: Secrets, token: DelegationTokenIdentifier) -> bytes:
    """Return the bytes of a token's key; none where it is not known, or is Java's null."""
    key = secrets.keys.get(token.master_key_id)
    return b"" if key is None else key.key or b""


def issue(
    secrets: Secrets, wanted: Wanted, now_ms: int, rules: TokenRules, random: Callable[[int], bytes]
) -> tuple[tuple[ops.Op, ...], Shown]:
    """Return the edits that give a token, and the token.

    The first edit is a new key where the last has signed for long enough: a NameNode that gives no
    tokens makes no keys, and one that becomes active goes on with the key of the one before.

    Raises:
        FsError: if its owner has too many already, or its names are too long.
    """
    if secrets.token_sequence_number >= MAX_NUMBER:
        raise io_error("no more delegation tokens can be numbered")
    if secrets.tokens_of[wanted.owner] >= MAX_OF_OWNER:
        raise io_error(
            f"{wanted.owner} has {MAX_OF_OWNER} delegation tokens that have not ended. Cancel "
            "those that are not needed any more."
        )
    key_id, secret, made = _current_key(secrets, now_ms, rules, random)
    token = DelegationTokenIdentifier(
        owner=wanted.owner,
        renewer=wanted.renewer,
        real_user=wanted.real_user,
        issue_date=now_ms,
        max_date=now_ms + rules.lifetime_ms,
        sequence_number=secrets.token_sequence_number + 1,
        master_key_id=key_id,
    )
    identifier = TOKEN.write(token)
    if len(identifier) > MAX_IDENTIFIER_BYTES:
        raise io_error("the names of the token's owner and renewer are too long")
    op = ops.GetDelegationToken(token, min(token.max_date, now_ms + rules.renewal_ms))
    return (*made, op), Shown(identifier, signed(identifier, secret))


def _current_key(
    secrets: Secrets, now_ms: int, rules: TokenRules, random: Callable[[int], bytes]
) -> tuple[int, bytes, tuple[ops.Op, ...]]:
    """Return the id and the bytes of the key that signs now, and the edit that makes a new one.

    Clocks are set back: what counts is the time that has passed since, whatever its sign.
    """
    lasts = rules.key_ms + rules.lifetime_ms
    key = secrets.keys.get(secrets.current_key_id)
    if key is not None and key.key and abs(now_ms - (key.expiry_date - lasts)) < rules.key_ms:
        return key.key_id, key.key, ()
    key_id, secret = secrets.current_key_id + 1, random(_KEY_BYTES)
    return key_id, secret, (ops.UpdateMasterKey(DelegationKey(key_id, now_ms + lasts, secret)),)


def password_of(secrets: Secrets, identifier: bytes, now_ms: int) -> bytes:
    """Return the password of a token that is good now; raise FsError (InvalidToken)."""
    token = read_identifier(identifier)
    secret, expiry = _secret(secrets, token), secrets.tokens.get(token)
    if expiry is None or not secret or not token.owner:
        raise invalid(f"token {as_text(token)} can't be found in cache")
    if expiry < now_ms:
        raise invalid(
            f"token {as_text(token)} is expired, current time: {now_ms} "
            f"expected renewal time: {expiry}"
        )
    return signed(identifier, secret)


def renew(
    secrets: Secrets, shown: Shown, renewer: str, now_ms: int, rules: TokenRules
) -> ops.RenewDelegationToken:
    """Return the edit that lets a token last longer.  ``renewer`` is a short name.

    Raises:
        FsError: InvalidToken, or AccessControlException where the caller is not its renewer.
    """
    token = read_identifier(shown.identifier)
    said = as_text(token)
    if token.max_date < now_ms:
        raise invalid(
            f"{renewer} tried to renew an expired token {said} max expiration date: "
            f"{token.max_date} currentTime: {now_ms}"
        )
    if not token.renewer:
        raise denied(f"{renewer} tried to renew a token {said} without a renewer")
    if token.renewer != renewer:
        raise denied(
            f"{renewer} tries to renew a token {said} with non-matching renewer {token.renewer}"
        )
    secret = _secret(secrets, token)
    if not secret:
        raise invalid(
            f"Unable to find master key for keyId={token.master_key_id} from cache. Failed to "
            f"renew an unexpired token {said} with sequenceNumber={token.sequence_number}"
        )
    if not hmac.compare_digest(signed(shown.identifier, secret), shown.password):
        raise denied(f"{renewer} is trying to renew a token {said} with wrong password")
    if token not in secrets.tokens:
        raise invalid(f"Renewal request for unknown token {said}")
    return ops.RenewDelegationToken(token, min(token.max_date, now_ms + rules.renewal_ms))


def cancel(
    secrets: Secrets, identifier: bytes, canceller: str, rules: TokenRules
) -> ops.CancelDelegationToken:
    """Return the edit that ends a token.  Its owner and its renewer may; no superuser may.

    Raises:
        FsError: InvalidToken, or AccessControlException.
    """
    token = read_identifier(identifier)
    if not token.owner:
        raise invalid(f"Token with no owner {as_text(token)}")
    if canceller not in {token.owner, short_name(token.owner, rules), token.renewer} - {""}:
        raise denied(f"{canceller} is not authorized to cancel the token {as_text(token)}")
    if token not in secrets.tokens:
        raise invalid(f"Token not found {as_text(token)}")
    return ops.CancelDelegationToken(token)


def expired(secrets: Secrets, now_ms: int) -> Iterator[ops.CancelDelegationToken]:
    """Yield the edits that remove the tokens that were not renewed in time."""
    for token, expiry in secrets.tokens.items():
        if expiry < now_ms:
            yield ops.CancelDelegationToken(token)


def short_name(name: str, rules: TokenRules) -> str:
    """Return the short name of an owner or a renewer; raise FsError where there is none."""
    try:
        return rules.short_name(name)
    except NoShortName as failure:
        raise io_error(str(failure)) from failure
