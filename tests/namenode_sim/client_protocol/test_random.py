"""Whatever clients do, a standby that reads the log has the same tree, retry answers included."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ha.rpc.errors import RemoteFault
from namenode_sim.namespace.inode import INodeDirectory, subtree
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.client_protocol.namenode_in_memory import GROUPS, Fields, serve
from tests.namenode_sim.namespace.dump import differences

names = st.sampled_from(["a", "b", "é"])
paths = st.lists(names, max_size=3).map(lambda parts: "/" + "/".join(parts))
modes = st.sampled_from([0o755, 0o700, 0o1777, 0o777]).map(lambda mode: {"perm": mode})
users = st.sampled_from(sorted(GROUPS))
flags = st.booleans()
quota = st.sampled_from([3, 8, 2**63 - 1, 2**64 - 1])
client = st.sampled_from(["w1", "w2"])


def call(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, Fields]]:
    return st.tuples(st.just(name), st.fixed_dictionaries(fields))


CALLS = st.one_of(
    call("mkdirs", src=paths, masked=modes, createParent=flags),
    call(
        "create",
        src=paths,
        masked=modes,
        clientName=client,
        createFlag=st.sampled_from([1, 2, 3]),
        createParent=flags,
        replication=st.just(3),
        blockSize=st.just(1 << 27),
    ),
    call("complete", src=paths, clientName=client),
    call("append", src=paths, clientName=client),
    call("recoverLease", src=paths, clientName=client),
    call("rename", src=paths, dst=paths),
    call("rename2", src=paths, dst=paths, overwriteDest=flags),
    call("delete", src=paths, recursive=flags),
    call("setPermission", src=paths, permission=modes),
    call("setOwner", src=paths, username=users, groupname=st.sampled_from(["staff", ""])),
    call("setTimes", src=paths, mtime=st.integers(0, 2**41), atime=st.integers(0, 2**41)),
    call("setReplication", src=paths, replication=st.integers(1, 4)),
    call("setQuota", path=paths, namespaceQuota=quota, storagespaceQuota=quota),
    call("setStoragePolicy", src=paths, policyName=st.sampled_from(["HOT", "COLD"])),
    call("fsync", src=paths, client=client),
)


def check(namespace: Namespace) -> None:
    reachable = {node.id: node for node in subtree(namespace.tree.root)}
    assert reachable == dict(namespace.tree.inodes.items())
    for node in reachable.values():
        if isinstance(node, INodeDirectory):
            assert all(child.parent is node for child in node.children.values())
            assert all(name == child.name for name, child in node.children.items())
    held = {number for files in namespace.tree.leases.values() for number in files}
    writing = {
        n for n, node in reachable.items() if getattr(node, "under_construction", None) is not None
    }
    assert held == writing


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CALLS, users), max_size=40))
def test_a_replayed_log_gives_the_same_tree(steps: list[tuple[tuple[str, Fields], str]]) -> None:
    async def run() -> None:
        served = serve()
        await served.call("setPermission", src="/", permission={"perm": 0o777})
        for (method, fields), user in steps:
            before = len(served.log.frames)
            try:
                await served.call(method, user=user, **fields)
            except RemoteFault:
                assert len(served.log.frames) == before
        check(served.namespace)
        standby = served.log.replayed()
        assert differences(served.namespace, standby) == []
        assert len(standby.retry_cache) == len(served.namespace.retry_cache)

    asyncio.run(run())
