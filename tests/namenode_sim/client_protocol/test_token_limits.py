"""Tokens at their limits, and tokens that only a log of another NameNode could hold."""

import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ha.security.sasl.mechanism import SaslFailure
from hadoop.proto.hdfs_types_pb2 import TokenProto
from journal.model import NamespaceInfo
from namenode_sim.client_protocol.tokens import secret_manager
from namenode_sim.client_protocol.words.model import TokenRules
from namenode_sim.edits import ops
from namenode_sim.edits.admin_codec import TOKEN
from namenode_sim.edits.codec import NEWEST_LAYOUT
from namenode_sim.edits.values import DelegationKey, DelegationTokenIdentifier
from namenode_sim.image.reader import load_image
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.state import Secrets
from namenode_sim.token_login import TokenLogins
from tests.namenode_sim.client_protocol.test_tokens import (
    BEGIN,
    DAY,
    HOUR,
    INVALID,
    IO,
    RULES,
    Scene,
    login_refused,
    refused,
)

FAR = BEGIN + 7 * DAY


def planted(scene: Scene, owner: str = "alice", key: bytes | None = b"k") -> TokenProto:
    """Log a token as another NameNode may have, and return it."""
    scene.served.log_and_apply(ops.UpdateMasterKey(DelegationKey(9, FAR, key)))
    token = DelegationTokenIdentifier(owner, "yarn", "", BEGIN, FAR, 5, 9)
    scene.served.log_and_apply(ops.GetDelegationToken(token, FAR))
    identifier = TOKEN.write(token)
    password = secret_manager.signed(identifier, key or b"")
    return TokenProto(identifier=identifier, password=password, kind="", service="")


async def test_one_user_has_a_limited_number_of_tokens() -> None:
    scene = Scene()
    secrets = scene.served.namespace.secrets
    token = await scene.get()
    secrets.tokens_of["alice"] = secret_manager.MAX_OF_OWNER
    await refused(scene.get(), IO, "alice has 100000 delegation tokens that have not ended")
    await scene.get("bob")
    await scene.cancel(token)
    await scene.get()


async def test_names_that_are_too_long_are_refused_and_nothing_is_written() -> None:
    scene = Scene()
    await refused(scene.get(renewer="y" * 2048), IO, "too long")
    assert scene.served.log.ops() == []
    scene.served.namespace.secrets.token_sequence_number = secret_manager.MAX_NUMBER
    await refused(scene.get(), IO, "numbered")


@pytest.mark.parametrize(("size", "fits"), [(2048, True), (2049, False)])
async def test_an_identifier_has_a_longest_length(size: int, fits: bool) -> None:
    scene = Scene()
    rest = len((await scene.get(renewer="r" * 200)).identifier) - 200
    renewer = "r" * (size - rest - 1)  # whose length takes a byte more
    if fits:
        token = await scene.get(renewer=renewer)
        assert len(token.identifier) == size
        assert scene.log_in(token) == ("alice", "")
    else:
        await refused(scene.get(renewer=renewer), IO, "too long")
        with pytest.raises(SaslFailure, match=f"it has {size} bytes"):
            scene.log_in(planted(scene, "a" * (size - len(planted(scene).identifier) + 3)))


def test_the_limits_are_those_of_the_formats() -> None:
    assert secret_manager.MAX_NUMBER == 2**31 - 1
    assert len(b64encode(bytes(secret_manager.MAX_IDENTIFIER_BYTES))) < 4096 - 500


async def test_a_token_is_not_renewed_beyond_its_life_when_it_is_issued() -> None:
    scene = Scene(replace(RULES, lifetime_ms=HOUR))
    token = await scene.get()
    scene.now_ms += HOUR
    scene.log_in(token)
    scene.now_ms += 1
    login_refused(scene, token, INVALID, "is expired, current time: 1700003600001 expected")


def test_a_token_of_a_hadoop_namenode_is_good() -> None:
    scene = Scene()
    assert scene.log_in(planted(scene)) == ("alice", "")


async def test_a_token_without_a_key_or_an_owner_is_none() -> None:
    lacking: tuple[Callable[[Scene], TokenProto], ...] = (
        lambda scene: planted(scene, key=None),
        lambda scene: planted(scene, key=b""),
        lambda scene: planted(scene, owner=""),
    )
    for token_of in lacking:
        scene = Scene()
        login_refused(scene, token_of(scene), INVALID, "can't be found in cache")
    scene = Scene()
    lost = planted(scene, key=None)
    await refused(scene.renew(lost), INVALID, "Unable to find master key for keyId=9")
    await refused(scene.cancel(planted(scene, owner="")), INVALID, "Token with no owner")


async def test_tokens_survive_a_restart_from_an_image(tmp_path: Path) -> None:
    scene = Scene()
    token, gone = await scene.get(), await scene.get("bob")
    await scene.cancel(gone, "bob")
    namespace, image = scene.served.namespace, tmp_path / "fsimage_0000000000000000004"
    save_image(namespace, image, NamespaceInfo(NEWEST_LAYOUT, 1, "CID-1", 0, "BP-1-127.0.0.1-1"))
    again = Scene(namespace=load_image(image))
    assert again.served.namespace.secrets == namespace.secrets
    assert again.served.namespace.secrets.tokens_of == {"alice": 1}
    assert again.log_in(token) == ("alice", "")
    login_refused(again, gone, INVALID, "can't be found in cache")
    await again.get()
    assert again.served.namespace.secrets.tokens_of == {"alice": 2}


async def test_a_name_with_other_letters_in_it_is_not_the_tokens() -> None:
    scene = Scene()
    name = b64encode((await scene.get(real_user="livy@REALM")).identifier).decode()
    logins = TokenLogins(Secrets)
    assert logins.user_of(name) == ("alice", "livy@REALM")
    with pytest.raises(SaslFailure, match="de-serialize"):
        logins.user_of(f"{name[:8]}!{name[8:]}")
    assert abs(logins.now_ms() - time.time() * 1000) < 60_000


async def test_there_are_none_by_default() -> None:
    assert TokenRules() == TokenRules(False, False, 7 * DAY, DAY, DAY)
