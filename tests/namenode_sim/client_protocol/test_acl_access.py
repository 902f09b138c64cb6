"""What an ACL grants to whom (FSPermissionChecker.hasAclPermission)."""

from dataclasses import dataclass

import pytest

from ha.rpc.errors import RemoteFault
from tests.namenode_sim.client_protocol.permissions_world import bits, entry, prepared


@dataclass(frozen=True, slots=True)
class Access:
    """What is put into the ACL of alice's directory, of mode 0750, and who may then do what."""

    entries: str
    user: str
    wanted: str
    allowed: bool


ACLS: dict[str, Access] = {
    "a named user": Access("user:carol:r-x", "carol", "r-x", True),
    "one who has more": Access("user:carol:rwx", "carol", "r-x", True),
    "one who has less": Access("user:carol:r--", "carol", "r-x", False),
    "masked": Access("user:carol:r-x mask::---", "carol", "r--", False),
    "masked in part": Access("user:carol:rwx mask::r-x", "carol", "-w-", False),
    "another user": Access("user:dave:rwx", "carol", "r--", False),
    "a user with a group's name": Access("user:staff:rwx", "bob", "-w-", False),
    "the directory's group": Access("user:carol:r-x", "bob", "r-x", True),
    "a named group": Access("group:carol:r-x", "carol", "r-x", True),
    "another group": Access("group:wheel:rwx", "bob", "-w-", False),
    "any group that grants": Access("group::--- group:bob:--- group:staff:r-x", "bob", "r-x", True),
    "no group that grants": Access("group::r-- user:carol:rwx", "bob", "-w-", False),
    "groups do not add up": Access("group::r-- group:bob:-w-", "bob", "rw-", False),
    "the owner's bits count first": Access("user:alice:---", "alice", "r-x", True),
    "and alone": Access("user::-w- user:carol:r-x", "alice", "r-x", False),
    "denied by name though others may": Access("user:carol:--- other::r-x", "carol", "r-x", False),
    "denied by group though others may": Access(
        "group::--- user:carol:r-x other::r-x", "bob", "r-x", False
    ),
    "others": Access("other::r-x", "carol", "r-x", True),
    "others beside names": Access("user:bob:rwx other::--x", "carol", "--x", True),
    "others, who have less": Access("user:bob:rwx other::--x", "carol", "r-x", False),
    "a default does not count": Access("default:user:carol:r-x", "carol", "r-x", False),
    "nor beside access entries": Access(
        "user:bob:rwx default:user:carol:r-x", "carol", "r-x", False
    ),
    "nor instead of the mode": Access("default:group::---", "bob", "r-x", True),
}


@pytest.mark.parametrize("row", ACLS.values(), ids=ACLS.keys())
async def test_acls_decide(row: Access) -> None:
    served = await prepared()
    entries = [entry(text) for text in row.entries.split()]
    await served.call("modifyAclEntries", src="/home/alice", aclSpec=entries)
    access = served.call("checkAccess", user=row.user, path="/home/alice", mode=bits(row.wanted))
    if row.allowed:
        await access
    else:
        with pytest.raises(RemoteFault, match="Permission denied"):
            await access
