"""Which edits of attributes save a node for the latest snapshot, and which change nothing."""

import pytest

from namenode_sim.edits import ops, values
from namenode_sim.edits.ops import Op
from namenode_sim.namespace.inode import QUOTA_DONT_SET
from namenode_sim.namespace.snapshots.diffs import diffs_of
from namenode_sim.namespace.state import SnapshotRules
from tests.namenode_sim.namespace.given_edits import B1, after, file, go_on, mkdir

F, E = "/d/f", "/d/e"
ALLOWED: list[Op] = [mkdir("/d"), ops.AllowSnapshot("/d"), mkdir(E), *file(F, B1)]
A, B = (values.XAttr(values.XAttrNamespace.USER, name, b"1") for name in "ab")
ACL = (
    *(
        values.AclEntry(values.AclScope.ACCESS, kind, None, 5)
        for kind in (values.AclType.USER, values.AclType.GROUP)
    ),
    values.AclEntry(values.AclScope.ACCESS, values.AclType.USER, "bob", 6),
    *(
        values.AclEntry(values.AclScope.ACCESS, kind, None, 5)
        for kind in (values.AclType.MASK, values.AclType.OTHER)
    ),
)

SAVES: dict[str, tuple[list[Op], Op]] = {
    "the mode": ([], ops.SetPermissions(F, 0o700)),
    "the owner": ([], ops.SetOwner(F, "bob", "")),
    "the group": ([], ops.SetOwner(F, "", "g")),
    "both": ([], ops.SetOwner(F, "bob", "g")),
    "the time of a change": ([], ops.Times(F, 99, -1)),
    "the time of an access": ([], ops.Times(F, -1, 99)),
    "the times 0": ([], ops.Times(F, -1, 0)),
    "both times": ([], ops.Times(F, 99, 99)),
    "a quota": ([], ops.SetQuota(E, 5, 6)),
    "a quota by type": ([], ops.SetQuotaByStorageType(E, values.StorageType.SSD, 9)),
    "the first ACL": ([], ops.SetAcl(F, ACL)),
    "another ACL": ([ops.SetAcl(F, ACL)], ops.SetAcl(F, ACL)),
    "an ACL goes": ([ops.SetAcl(F, ACL)], ops.SetAcl(F, ())),
    "the first attribute": ([], ops.SetXAttr(F, (A,))),
    "another attribute": ([ops.SetXAttr(F, (A,))], ops.SetXAttr(F, (B,))),
    "the last attribute goes": ([ops.SetXAttr(F, (A,))], ops.RemoveXAttr(F, (A,))),
    "the policy of a file": ([], ops.SetStoragePolicy(F, 7)),
    "the policy of a directory": ([], ops.SetStoragePolicy(E, 7)),
    "the policy of a directory goes": ([ops.SetStoragePolicy(E, 7)], ops.SetStoragePolicy(E, 0)),
}
SAVES_NOTHING: dict[str, tuple[list[Op], Op]] = {
    "no owner and no group": ([], ops.SetOwner(F, "", "")),
    "no time": ([], ops.Times(F, -1, -1)),
    "the quotas that it has": ([ops.SetQuota(E, 5, 6)], ops.SetQuota(E, 5, QUOTA_DONT_SET)),
    "the quota of a type that it has": (
        [ops.SetQuotaByStorageType(E, values.StorageType.SSD, 9)],
        ops.SetQuotaByStorageType(E, values.StorageType.SSD, 9),
    ),
    "no ACL of one without": ([], ops.SetAcl(F, ())),
    "no attributes of one without": ([], ops.SetXAttr(F, ())),
    "an attribute that it does not have goes": (
        [ops.SetXAttr(F, (A,))],
        ops.RemoveXAttr(F, (B,)),
    ),
    "an attribute of one without goes": ([], ops.RemoveXAttr(F, (B,))),
}  # fmt: skip


def saved(given: list[Op], op: Op, rules: SnapshotRules) -> list[int]:
    namespace = after(ALLOWED, given, ops.CreateSnapshot("/d", "s", 50))
    namespace.snapshots.rules = rules
    go_on(namespace, op)
    nodes = [namespace.tree.node(path) for path in (E, F)]
    return [diff.snapshot_id for node in nodes for diff in diffs_of(node) or ()]


@pytest.mark.parametrize(("given", "op"), SAVES.values(), ids=SAVES.keys())
def test_a_node_is_saved_before(given: list[Op], op: Op) -> None:
    assert saved(given, op, SnapshotRules()) == [0]


@pytest.mark.parametrize(("given", "op"), SAVES_NOTHING.values(), ids=SAVES_NOTHING.keys())
def test_a_node_that_stays_as_it_is_is_not_saved(given: list[Op], op: Op) -> None:
    assert saved(given, op, SnapshotRules()) == []


@pytest.mark.parametrize(
    ("op", "ids"),
    [(ops.Times(F, -1, 99), []), (ops.Times(F, 99, 99), [0]), (ops.Times(F, 99, -1), [0])],
    ids=["of an access", "both", "of a change"],
)
def test_the_time_of_a_change_is_saved_though_accesses_are_left_out(op: Op, ids: list[int]) -> None:
    assert saved([], op, SnapshotRules(skip_access_time=True)) == ids
