"""The names by which tokens are renewed, cancelled and logged in with: principals of Kerberos."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.conf.configuration import load_configuration
from ha.security.kerberos.auth_to_local import parse_rules
from ha.security.kerberos.own import OwnKerberos, log_in
from ha.security.sasl.mechanism import SaslFailure
from namenode_sim.process.client_settings import client_settings
from tests.namenode_sim.client_protocol.test_tokens import (
    BEGIN,
    DAY,
    DENIED,
    INVALID,
    IO,
    Scene,
    login_refused,
    refused,
)


@pytest.fixture
def kerberos() -> Iterator[None]:
    """Have names as where YARN's principal is rm."""
    rules = parse_rules("RULE:[2:$1@$0](rm@EXAMPLE)s/.*/yarn/ DEFAULT", "hadoop", "EXAMPLE")
    log_in(OwnKerberos("nn/h@EXAMPLE", None, rules, (), ()))
    yield
    log_in(None)


@pytest.mark.parametrize("renewer", ["yarn", "yarn@EXAMPLE", "yarn/h@EXAMPLE", "rm/h@EXAMPLE"])
@pytest.mark.usefixtures("kerberos")
async def test_a_renewer_has_the_name_by_which_it_will_call(renewer: str) -> None:
    scene = Scene()
    token = await scene.get(renewer=renewer)
    assert await scene.renew(token, "yarn") == BEGIN + DAY
    await scene.cancel(token, "yarn")


@pytest.mark.usefixtures("kerberos")
async def test_a_name_without_a_rule_gets_and_ends_no_token() -> None:
    scene = Scene()
    await refused(scene.get(renewer="yarn@ELSEWHERE"), IO, "No rules applied to yarn@ELSEWHERE")
    assert scene.served.log.ops() == []
    token = await scene.get("alice@ELSEWHERE")
    await refused(scene.cancel(token), IO, "No rules applied to alice@ELSEWHERE")
    with pytest.raises(SaslFailure, match="No rules applied"):
        scene.log_in(token)


async def test_without_kerberos_a_name_is_no_principal() -> None:
    """The machine's users may be hdfs@CORP, and that is not hdfs."""
    scene = Scene()
    token = await scene.get("hdfs@CORP", "yarn@CORP")
    assert scene.log_in(token) == ("hdfs@CORP", "")
    await refused(scene.cancel(token, "hdfs"), DENIED, "not authorized")
    await refused(scene.renew(token, "yarn"), DENIED, "non-matching renewer")
    await scene.cancel(token, "hdfs@CORP")


CANCELLERS: dict[str, tuple[str, bool]] = {
    "its owner": ("alice", True),
    "its renewer": ("yarn", True),
    "the superuser": ("hdfs", False),
    "another user": ("mallory", False),
    "no user": ("", False),
}


@pytest.mark.parametrize(("user", "may"), CANCELLERS.values(), ids=CANCELLERS)
@pytest.mark.parametrize("owner", ["alice", "alice@EXAMPLE"])
@pytest.mark.usefixtures("kerberos")
async def test_its_owner_and_its_renewer_cancel_a_token(owner: str, user: str, may: bool) -> None:
    scene = Scene()
    token = await scene.get(owner)
    if not may:
        await refused(scene.cancel(token, user), DENIED, "is not authorized to cancel the token")
        scene.log_in(token)
        return
    await scene.cancel(token, user)
    login_refused(scene, token, INVALID, r"token \(.*owner=alice.*\) can't be found in cache")
    await refused(scene.cancel(token, user), INVALID, "Token not found")


@pytest.mark.usefixtures("kerberos")
def test_a_namenode_has_the_names_of_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    conf = load_configuration(tmp_path, ["hadoop.security.authentication=kerberos"], environment={})
    assert client_settings(conf).tokens.short_name("rm/h@EXAMPLE") == "yarn"
