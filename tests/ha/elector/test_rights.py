"""What ACLs let whom do, and which of them are doubtful: tables."""

import re

import pytest

from ha.elector.zookeeper.acl_review import Fault, doubt_of, review, takeover_obstacle
from ha.elector.zookeeper.credentials import AclEntry, open_to_all, parse_acl
from ha.elector.zookeeper.rights import ZnodeAcl, beyond, open_rights_text, shown_acl
from ha.elector.zookeeper.whoami_request import WhoAmI

CREATOR = "auth::rwcda"
NN1, NN2 = "x509:CN=nn1:rwcda", "x509:CN=nn2:rwcda"


def acl(text: str) -> frozenset[AclEntry]:
    return frozenset(parse_acl(text))


@pytest.mark.parametrize(
    ("found", "configured", "ours", "more"),
    [
        ("world:anyone:rwcda", CREATOR, NN1, "world:anyone:wcda"),
        ("world:anyone:rwcda", CREATOR, None, "world:anyone:wcda"),
        ("world:anyone:r,x509:CN=nn1:rwcda", CREATOR, NN1, ""),
        (NN2, CREATOR, NN1, "x509:CN=nn2:wcda"),
        (NN2, CREATOR, None, ""),  # whom we are is not known: it may be us
        ("digest:mallory:x:rwcda,world:anyone:r", CREATOR, NN1, "digest:mallory:x:wcda"),
        ("ip:10.0.0.7:w", CREATOR, None, "ip:10.0.0.7:w"),
        ("sasl:nn:rwcda", "sasl:nn:rwcda,sasl:ops:r", "sasl:nn:rwcda,sasl:ops:r", ""),
        ("sasl:nn:rwcda,sasl:ops:rw", "sasl:nn:rwcda,sasl:ops:r", None, "sasl:ops:w"),
        ("sasl:nn:r", "sasl:nn:rwcda", None, ""),
        ("world:anyone:rwcda", "world:anyone:rwcda", None, ""),
        ("sasl:x:rwcda", "world:anyone:rwcda", None, ""),
        (NN2, f"{CREATOR},sasl:ops:r", None, ""),
        (NN2, CREATOR, CREATOR, "x509:CN=nn2:wcda"),
    ],
)
def test_what_goes_beyond_the_configured_acl(
    found: str, configured: str, ours: str | None, more: str
) -> None:
    known = None if ours is None else acl(ours)
    assert beyond(acl(found), parse_acl(configured), known) == acl(more)


@pytest.mark.parametrize(
    ("found", "could"),
    [
        ("world:anyone:rwcda", "do everything with it"),
        ("world:anyone:wcda", "do everything with it"),
        ("world:anyone:r,sasl:nn:rwcda", ""),
        ("world:anyone:cd", "create znodes in it, delete what is in it"),
        ("world:anyone:w,world:anyone:a", "write it, give it another ACL"),
    ],
)
def test_what_strangers_could_do(found: str, could: str) -> None:
    assert open_rights_text(acl(found)) == could


@pytest.mark.parametrize(
    ("found", "is_open"),
    [
        ("world:anyone:rwcda", True),
        ("world:anyone:d", True),
        ("auth::rwcda,world:anyone:r", False),  # a reader can have written nothing
        ("auth::rwcda", False),
        ("sasl:anyone:rwcda", False),
        ("", False),
    ],
)
def test_which_acls_leave_znodes_to_everybody(found: str, is_open: bool) -> None:
    assert open_to_all(parse_acl(found)) is is_open


def test_bits_that_no_right_has_hide_nothing() -> None:
    assert open_rights_text([AclEntry("world", "anyone", 63)]) == "do everything with it"


@pytest.mark.parametrize(
    ("found", "configured", "ours", "fault"),
    [
        (NN1, CREATOR, NN1, None),
        (None, CREATOR, NN1, Fault.UNSEEN),
        ("world:anyone:rw", CREATOR, NN1, Fault.OPEN),
        ("x509:CN=nn1:rwcda,x509:CN=nn2:rwcda", CREATOR, NN1, Fault.OTHERS),
        ("x509:CN=nn2:r", CREATOR, NN1, Fault.NOT_OURS),
        ("x509:CN=nn1:rw", CREATOR, NN1, Fault.OTHERWISE),
        ("sasl:nn:rwcda", "sasl:nn:rwcda,sasl:ops:r", None, Fault.OTHERWISE),
        ("world:anyone:rwcda", "world:anyone:rwcda", None, None),
        ("world:anyone:r", "world:anyone:rwcda", None, Fault.NOT_OURS),
        (NN2, CREATOR, None, None),
        (NN2, CREATOR, NN1, Fault.NOT_OURS),
        ("sasl:CN=nn1:rwcda", CREATOR, NN1, Fault.NOT_OURS),
        (NN1, NN2, NN1, None),
        ("sasl:nn:r,sasl:ops:r", "sasl:nn:r", None, Fault.OTHERWISE),
    ],
)
def test_which_acls_are_doubtful(
    found: str | None, configured: str, ours: str | None, fault: Fault | None
) -> None:
    one = ZnodeAcl("/x", None if found is None else acl(found))
    told = review([one], parse_acl(configured), None if ours is None else acl(ours))
    assert [doubt.fault for doubt in told] == ([] if fault is None else [fault])


@pytest.mark.parametrize(
    ("member", "configured", "ours", "told"),
    [
        (NN2, CREATOR, NN1, "cannot share the breadcrumb.*nn2 as x509:CN=nn2:rwcda"),
        (None, CREATOR, NN1, "cannot share the breadcrumb.*does not let us see"),
        (NN1, CREATOR, NN1, "our znodes are for x509:CN=nn1:rwcda alone"),
        ("digest:nn:x:rwcda", CREATOR, "digest:nn:x:rwcda", ""),
        (NN2, f"{NN1},{NN2}", f"{NN1},{NN2}", ""),
        (NN2, CREATOR, None, ""),
        (NN2, f"{CREATOR},sasl:ops:r", NN1, "cannot share the breadcrumb"),
        (f"{NN1},digest:nn:x:rwcda", CREATOR, f"{NN1},digest:nn:x:rwcda", "our znodes are for"),
        (f"{NN2},world:anyone:r", CREATOR, f"{NN1},world:anyone:r", "cannot share the breadcrumb"),
        (f"{NN2},ip:10.0.0.7:r", CREATOR, f"{NN1},ip:10.0.0.7:r", "cannot share the breadcrumb"),
    ],
)  # fmt: skip
def test_whether_zkfcs_can_share_what_one_of_them_makes(
    member: str | None, configured: str, ours: str | None, told: str
) -> None:
    shown = [
        ZnodeAcl("/ns/NnhaMembers", acl(NN1)),
        ZnodeAcl("/ns/NnhaMembers/nn2", None if member is None else acl(member)),
    ]
    known = None if ours is None else acl(ours)
    text = takeover_obstacle(shown, parse_acl(configured), known, "/ns/NnhaMembers")
    if not told:
        assert text == ""
    else:
        assert re.search(told, text), text


@pytest.mark.parametrize(
    ("found", "doubt"),
    [
        (NN1, ""),
        ("x509:CN=nn1:r", ""),
        (None, "made under another identity"),
        ("world:anyone:cd", "anybody could create znodes in it, delete what is in it"),
        (NN2, "beyond the configured ACL it is open to x509:CN=nn2:wcda"),
    ],
)
def test_what_others_could_have_written_is_in_doubt(found: str | None, doubt: str) -> None:
    one = ZnodeAcl("/x", None if found is None else acl(found))
    told = doubt_of(one, parse_acl(CREATOR), acl(NN1))
    assert told.startswith(doubt)
    assert bool(told) is bool(doubt)


def test_no_hash_of_a_password_is_shown() -> None:
    mine = acl("digest:nn:aGFzaA==:rwcda,sasl:ops:r")
    others = [ZnodeAcl("/ns/NnhaMembers/nn2", acl("digest:zk:b3RoZXI=:rwcda"))]
    told = takeover_obstacle(others, parse_acl(CREATOR), mine, "/ns/NnhaMembers")
    told += "".join(one.text for one in review(others, parse_acl(CREATOR), mine))
    assert "digest:zk:(hash)" in told
    assert "aGFzaA" not in told + shown_acl(mine)
    assert "b3RoZXI" not in told


def test_who_we_are_is_read_from_zookeepers_bytes() -> None:
    data = b"??" + (3).to_bytes(4, "big")
    for text in (b"x509", b"CN=nn1", b"ip", b"127.0.0.1", b"digest", b"hdfs"):
        data += len(text).to_bytes(4, "big") + text
    assert WhoAmI.deserialize(data, 2) == ("digest:hdfs", "x509:CN=nn1")
