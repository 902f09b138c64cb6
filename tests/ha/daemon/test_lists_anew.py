"""Reading access lists and proxy users anew: what is half there, or switched, changes nothing."""

from pathlib import Path

import pytest

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys.security import Mode
from ha.daemon.exposure import let_in_by_lists, refresh_lists
from ha.security.access_control import AccessControl
from ha.security.kerberos.admission import Admission
from namenode_sim.token_login import offer_tokens
from tests.ha.security.test_unproven import Lines

ONE = "<configuration><property><name>{}</name><value>{}</value></property></configuration>"
AUTHORIZATION, ACL = "hadoop.security.authorization", "security.client.protocol.acl"


def started(folder: Path, on: str) -> tuple[AccessControl, Configuration]:
    (folder / "core-site.xml").write_text(ONE.format(AUTHORIZATION, on))
    (folder / "hadoop-policy.xml").write_text(ONE.format(ACL, "alice"))
    access, conf = AccessControl(Mode.AUTO, target="t", audit=Lines()), load_configuration(folder)
    let_in_by_lists(access, conf, None)
    return access, conf


def test_lists_are_read_anew(tmp_path: Path) -> None:
    access, conf = started(tmp_path, "true")
    (tmp_path / "hadoop-policy.xml").write_text(ONE.format(ACL, "bob"))
    assert refresh_lists(access, conf)
    assert access.admission is not None
    assert access.admission.policy is not None
    assert access.admission.policy[ACL] == "bob"


BROKEN = {
    "half a policy": ("hadoop-policy.xml", ONE.format(ACL, "bob")[:-20]),
    "an empty policy": ("hadoop-policy.xml", ""),
    "half a core-site": ("core-site.xml", ONE.format(AUTHORIZATION, "true")[:-20]),
    "switched off": ("core-site.xml", ONE.format(AUTHORIZATION, "false")),
    "not set any more": ("core-site.xml", "<configuration/>"),
}


@pytest.mark.parametrize(("file", "text"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_read_or_was_switched_leaves_the_lists(
    tmp_path: Path, file: str, text: str
) -> None:
    access, conf = started(tmp_path, "true")
    before = access.admission
    (tmp_path / file).write_text(text)
    with pytest.raises(ConfigurationError):
        refresh_lists(access, conf)
    assert before is not None
    assert access.admission is before


def test_lists_that_were_not_there_at_the_start_are_not_said_to_count(tmp_path: Path) -> None:
    access, conf = started(tmp_path, "false")
    assert not refresh_lists(access, conf)
    (tmp_path / "core-site.xml").write_text(ONE.format(AUTHORIZATION, "true"))
    with pytest.raises(ConfigurationError, match="nothing was changed"):
        refresh_lists(access, conf)


def test_callers_with_tokens_are_let_in_after_a_refresh_as_before(tmp_path: Path) -> None:
    access, conf = started(tmp_path, "false")
    offer_tokens(access, lambda: None)
    refresh_lists(access, conf)
    assert access.admission == Admission()
