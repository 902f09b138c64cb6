"""Block tokens: their bytes, what they prove, and how keys are rolled."""

import base64
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hadoop import block_tokens
from hadoop.block_tokens import BlockKey, Grant, Mode, TokenRefused
from hadoop.proto import block_tokens_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.errors import UnknownKey
from hadoop.wire.handshake import data_user

NOW: Final = 1_700_000_000_000
HOUR: Final = 3_600_000
KEY: Final = BlockKey(7, NOW + 20 * HOUR, bytes(range(20)))
KEYS: Final = {7: KEY, -3: BlockKey(-3, NOW + HOUR, b"another")}
GRANT: Final = Grant("alice", "BP-1", 1 << 30, frozenset({Mode.READ}))
WRITE: Final = Grant(
    "alice", "BP-1", 1 << 30, frozenset({Mode.WRITE}), ("DISK", "SSD", "DISK"), ("a", "b", "c")
)


def token(grant: Grant = GRANT, key: BlockKey = KEY, expiry_ms: int = NOW) -> hdfs.TokenProto:
    return block_tokens.token_of(grant, key, expiry_ms)


def test_the_bytes_are_those_of_hadoops_writable() -> None:
    assert token(WRITE).identifier.hex(" ") == (
        "8a 01 8b cf e5 68 00 07 00 00 00 05 61 6c 69 63 65 00 00 00 04 42 50 2d 31 8c 40 00 00 00 "
        "01 05 57 52 49 54 45 03 04 44 49 53 4b 03 53 53 44 04 44 49 53 4b 03 "
        "00 00 00 01 61 00 00 00 01 62 00 00 00 01 63"
    )
    assert (token().kind, token().service) == ("HDFS_BLOCK_TOKEN", "")
    assert token().password.hex() == "84a757ccca80cc34327a469e4bf7ba7a8c9715a6"


@given(
    st.builds(
        Grant,
        st.text(max_size=20),
        st.text(max_size=20),
        st.integers(-(1 << 63), (1 << 63) - 1),
        st.frozensets(st.sampled_from(Mode)),
        st.lists(st.sampled_from(hdfs.StorageTypeProto.keys()), max_size=5).map(tuple),
        st.lists(st.text(max_size=9), max_size=5).map(tuple),
    ),
    st.integers(NOW, 1 << 62),
)
def test_what_is_written_is_read(grant: Grant, expiry_ms: int) -> None:
    made = token(grant, expiry_ms=expiry_ms)
    assert block_tokens.decode(made.identifier) == (expiry_ms, 7, grant)
    # Hadoop's handshake secret, which may stand behind it.
    assert block_tokens.decode(made.identifier + b"\x02ab") == (expiry_ms, 7, grant)


def test_the_form_of_protobuf_is_read_too() -> None:
    told = pb.BlockTokenSecretProto(
        expiryDate=NOW, keyId=(1 << 32) - 3, userId="alice", blockPoolId="BP-1",
        blockId=(1 << 64) - 5, modes=[pb.COPY, pb.REPLACE], storageTypes=[hdfs.SSD],
        storageIds=["b"],
    )  # fmt: skip
    grant = Grant("alice", "BP-1", -5, frozenset({Mode.COPY, Mode.REPLACE}), ("SSD",), ("b",))
    assert block_tokens.decode(told.SerializeToString()) == (NOW, -3, grant)


def changed(made: hdfs.TokenProto, **fields: bytes) -> hdfs.TokenProto:
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]


REFUSED: Final = {
    "none": (block_tokens.NO_TOKEN, GRANT, NOW, "has no block token"),
    "no sense": (changed(token(), identifier=b"\x8f"), GRANT, NOW, "makes no sense"),
    "no protobuf": (changed(token(), identifier=b"\x08\xff"), GRANT, NOW, "makes no sense"),
    "a mode that there is not": (
        changed(token(), identifier=token().identifier.replace(b"READ", b"ROOT")),
        GRANT, NOW, "makes no sense",
    ),
    "another key": (token(key=replace(KEY, key_id=8)), GRANT, NOW, "key 8, which is not known"),
    "a key that has ended": (token(), GRANT, NOW + 20 * HOUR + 1, "key 7, which is not known"),
    "another secret": (token(key=replace(KEY, secret=b"x")), GRANT, NOW, "signature is wrong"),
    "another password": (
        changed(token(), password=flipped(token().password, 19)), GRANT, NOW, "signature is wrong"
    ),
    "half a password": (
        changed(token(), password=token().password[:10]), GRANT, NOW, "signature is wrong"
    ),
    "no password": (changed(token(), password=b""), GRANT, NOW, "signature is wrong"),
    "another user's name in it": (
        changed(token(), identifier=token().identifier.replace(b"alice", b"bobby")),
        GRANT, NOW, "signature is wrong",
    ),
    "too late": (token(), GRANT, NOW + 1, "has ended"),
    "another block": (token(), replace(GRANT, block_id=5), NOW, "is for block 1073741824"),
    "another pool": (token(), replace(GRANT, pool="BP-2"), NOW, "is for block 1073741824"),
    "another mode": (
        token(), replace(GRANT, modes=frozenset({Mode.WRITE})), NOW, "does not allow WRITE"
    ),
    "another type": (token(WRITE), replace(WRITE, storage_types=("ARCHIVE",)), NOW, "types"),
    "one type too often": (token(WRITE), replace(WRITE, storage_types=("SSD",) * 2), NOW, "types"),
    "another storage": (token(WRITE), replace(WRITE, storage_ids=("d",)), NOW, "storages"),
}  # fmt: skip


@pytest.mark.parametrize(("made", "wanted", "now", "why"), REFUSED.values(), ids=REFUSED)
def test_a_token_that_does_not_prove_it_is_refused(
    made: hdfs.TokenProto, wanted: Grant, now: int, why: str
) -> None:
    with pytest.raises(TokenRefused, match=why):
        block_tokens.check(made, KEYS, wanted, now)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (token(), GRANT),
        (token(key=KEYS[-3]), GRANT),
        (token(), replace(GRANT, storage_types=("ARCHIVE",), storage_ids=("x",))),
        (token(WRITE), WRITE),
        (token(WRITE), replace(WRITE, storage_types=("DISK",), storage_ids=("c",))),
        (token(WRITE), replace(WRITE, storage_types=(), storage_ids=())),
        (token(replace(GRANT, modes=frozenset(Mode))), WRITE),
    ],
)
def test_a_token_allows_what_it_says(made: hdfs.TokenProto, wanted: Grant) -> None:
    assert block_tokens.check(made, KEYS, wanted, NOW).user == "alice"


@given(st.binary(max_size=80))
def test_no_bytes_prove_anything(identifier: bytes) -> None:
    made = hdfs.TokenProto(identifier=identifier, password=b"", kind="", service="")
    with pytest.raises(TokenRefused):
        block_tokens.check(made, KEYS, GRANT, NOW)


@given(st.integers(0, 60), st.binary(min_size=1, max_size=3))
def test_a_broken_token_is_refused(at: int, put: bytes) -> None:
    whole = token(WRITE).identifier
    broken = whole[:at] + put + whole[at + len(put) :]
    made = hdfs.TokenProto(identifier=broken, password=token(WRITE).password, kind="", service="")
    if broken != whole:
        with pytest.raises(TokenRefused):
            block_tokens.check(made, KEYS, WRITE, NOW)


def test_too_many_names_are_refused_before_they_are_read() -> None:
    many = replace(GRANT, storage_ids=("a",) * (block_tokens.MAX_NAMES + 1))
    with pytest.raises(TokenRefused, match="65 names, at most 64"):
        block_tokens.check(token(many), KEYS, GRANT, NOW)
    told = pb.BlockTokenSecretProto(expiryDate=NOW, storageIds=["a"] * 65)
    made = changed(token(), identifier=told.SerializeToString())
    with pytest.raises(TokenRefused, match="more than 64 names"):
        block_tokens.check(made, KEYS, GRANT, NOW)


# ---- keys ----


class Secrets:
    """Draws secrets that differ."""

    def __init__(self) -> None:
        self.drawn = 0

    def __call__(self, count: int) -> bytes:
        self.drawn += 1
        return bytes((self.drawn,)) * count


def ring(serial: int = 10) -> block_tokens.KeyRing:
    return block_tokens.first_ring(serial, NOW, HOUR, 2 * HOUR, Secrets())


def test_a_namenode_begins_with_two_keys_that_end_as_in_hadoop() -> None:
    begun = ring()
    assert begun.current == BlockKey(10, NOW + 4 * HOUR, b"\x01" * 20)
    assert begun.following == BlockKey(11, NOW + 5 * HOUR, b"\x02" * 20)
    assert list(begun.known.values()) == [begun.current, begun.following]


def test_the_next_key_signs_after_an_interval_and_tokens_of_the_last_stay_good() -> None:
    draw, begun = Secrets(), ring()
    draw.drawn = 2
    assert block_tokens.rolled(begun, NOW + HOUR - 1, draw) is begun
    later = block_tokens.rolled(begun, NOW + HOUR, draw)
    assert (later.current.key_id, later.current.secret) == (11, begun.following.secret)
    assert later.following == BlockKey(12, NOW + 6 * HOUR, b"\x03" * 20)
    assert later.known[10] == BlockKey(10, NOW + 4 * HOUR, begun.current.secret)
    assert later.rolled_ms == NOW + HOUR
    last = begun.token(GRANT, NOW + HOUR - 1)
    assert block_tokens.check(last, later.known, GRANT, NOW + 3 * HOUR - 1).user == "alice"
    with pytest.raises(TokenRefused, match="has ended"):
        block_tokens.check(last, later.known, GRANT, NOW + 3 * HOUR)


def test_keys_that_have_ended_are_forgotten() -> None:
    found = ring()
    for hour in range(1, 9):
        found = block_tokens.rolled(found, NOW + hour * HOUR, Secrets())
    assert sorted(found.known) == [14, 15, 16, 17, 18, 19]


@pytest.mark.parametrize("back", [HOUR, 1000 * HOUR])
def test_a_clock_that_is_set_back_rolls_the_keys_too(back: int) -> None:
    assert block_tokens.rolled(ring(), NOW - back, Secrets()).rolled_ms == NOW - back


def test_ids_begin_again_behind_the_last() -> None:
    assert ring(block_tokens.KEY_IDS).following.key_id == 1


def test_keys_travel_as_hadoops_messages() -> None:
    message = ring().message()
    assert (message.isBlockTokenEnabled, message.keyUpdateInterval, message.tokenLifeTime) == (
        True, HOUR, 2 * HOUR,
    )  # fmt: skip
    assert block_tokens.keys_of(message) == (
        ring().current, ring().current, ring().following,
    )  # fmt: skip
    assert block_tokens.keys_of(block_tokens.NO_KEYS) == ()


def test_a_javas_negative_id_travels_without_its_sign() -> None:
    message = BlockKey(-3, NOW, b"x").message()
    assert message.keyId == (1 << 32) - 3
    (current,) = block_tokens.keys_of(
        pb.ExportedBlockKeysProto(
            isBlockTokenEnabled=True, keyUpdateInterval=1, tokenLifeTime=1, currentKey=message
        )
    )
    assert current.key_id == -3


# ---- keys of encrypted connections ----

NONCE: Final = bytes(range(1, 9))
SECRET: Final = bytes.fromhex("eadedbec58e169a0a0915fcbf03ae758481ab0c4")
"""What `openssl dgst -sha1 -mac HMAC` makes of the nonce under the bytes of KEY."""


def data_key(key: BlockKey = KEY) -> hdfs.DataEncryptionKeyProto:
    return block_tokens.data_key(key, "BP-1", NONCE, NOW, "rc4")


def test_a_data_encryption_key_is_the_hmac_of_its_nonce_under_a_block_key() -> None:
    assert data_key() == hdfs.DataEncryptionKeyProto(
        keyId=7, blockPoolId="BP-1", nonce=NONCE, encryptionKey=SECRET, expiryDate=NOW,
        encryptionAlgorithm="rc4",
    )  # fmt: skip
    assert not block_tokens.data_key(KEY, "", NONCE, NOW, "").HasField("encryptionAlgorithm")
    assert data_user(data_key()) == "7 BP-1 AQIDBAUGBwg="
    assert data_user(data_key(KEYS[-3])) == "-3 BP-1 AQIDBAUGBwg="


@pytest.mark.parametrize("key", KEYS.values())
def test_the_other_end_finds_the_secret_by_the_user(key: BlockKey) -> None:
    made = data_key(key)
    assert block_tokens.data_secret(data_user(made), "BP-1", KEYS, NOW) == made.encryptionKey


def test_a_namenode_makes_keys_that_last_as_long_as_its_tokens() -> None:
    made = ring().data_key("BP-1", NONCE, NOW, "")
    assert made.expiryDate == NOW + 2 * HOUR
    found = block_tokens.data_secret(data_user(made), "BP-1", ring().known, NOW + 4 * HOUR)
    assert found == made.encryptionKey
    with pytest.raises(UnknownKey, match="key 10, which is not known here"):
        block_tokens.data_secret(data_user(made), "BP-1", ring().known, NOW + 4 * HOUR + 1)


OF_NO_KEY: Final = {
    "": "names no data encryption key",
    "7 BP-1": "names no data encryption key",
    "7 BP-1 AQIDBAUGBwg= 1": "names no data encryption key",
    "x BP-1 AQIDBAUGBwg=": "names no data encryption key",
    "7 BP-1 *": "names no data encryption key",
    "7 BP-1 AQIDBAUGBwg": "names no data encryption key",
    f"{'7' * 5000} BP-1 AQIDBAUGBwg=": "names no data encryption key",
    "7 BP-2 AQIDBAUGBwg=": "none of this block pool",
    "7 BP-1 ": "none of this block pool",
    "7 BP-1 AQIDBAUGBw==": "none of this block pool",
    f"7 BP-1 {base64.b64encode(token().identifier).decode()}": "none of this block pool",
}


@pytest.mark.parametrize("user", OF_NO_KEY)
def test_a_user_that_names_no_key_of_this_pool_is_refused(user: str) -> None:
    """Not even one with the identifier of a block token, whose holder has its HMAC."""
    with pytest.raises(TokenRefused, match=OF_NO_KEY[user]):
        block_tokens.data_secret(user, "BP-1", KEYS, NOW)


@pytest.mark.parametrize("user", ["8 BP-1 AQIDBAUGBwg=", "-7 BP-1 AQIDBAUGBwg="])
def test_a_block_key_that_is_not_known_is_another_refusal(user: str) -> None:
    with pytest.raises(UnknownKey):
        block_tokens.data_secret(user, "BP-1", KEYS, NOW)


@given(
    st.one_of(
        st.text(),
        st.builds(" ".join, st.lists(st.text(max_size=12), min_size=3, max_size=3)),
        st.builds("{} BP-1 {}".format, st.integers(-9, 9), st.text(max_size=12)),
    )
)
def test_any_user_is_refused_in_one_of_two_ways(user: str) -> None:
    with pytest.raises((TokenRefused, UnknownKey)):
        block_tokens.data_secret(user, "BP-1", {}, NOW)
