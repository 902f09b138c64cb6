"""Any namespace goes into an image and comes out equal."""

import io

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from journal.model import TxId
from namenode_sim.edits import ops, values
from namenode_sim.image.codecs import GZIP_CODEC, ZLIB_CODEC
from namenode_sim.image.reader import read_namespace
from namenode_sim.image.writer import write_namespace
from namenode_sim.namespace import inode as namespace_inode
from namenode_sim.namespace.file_numbers import pack_numbers
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.state import Counters, EcState, ErasureCodingPolicy
from tests.namenode_sim.image.image_world import PERMISSION
from tests.namenode_sim.namespace.dump import differences
from tests.worlds.files import info

TIME = st.integers(0, 2**62)
COUNT = st.integers(0, 2**63 - 1)
USER = st.sampled_from(["hdfs", "alice", "bob", "", "ü", "a b"])
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NAME = st.binary(min_size=1, max_size=6).filter(lambda name: b"/" not in name)
BLOCK = st.builds(values.Block, st.integers(-(2**63), 2**63 - 1), COUNT, COUNT)
QUOTA = st.just(-1) | COUNT
ACL = st.lists(
    st.builds(
        values.AclEntry,
        st.sampled_from(values.AclScope),
        st.sampled_from(values.AclType),
        st.none() | st.sampled_from(["bob", "staff", "hdfs"]),
        st.integers(0, 7),
    ),
    min_size=1,
    max_size=4,
).map(tuple)
XATTRS = st.lists(
    st.builds(
        values.XAttr,
        st.sampled_from(values.XAttrNamespace),
        st.sampled_from(["bob", "hdfs.crypto", "x"]),
        st.none() | st.binary(min_size=1, max_size=9),
    ),
    min_size=1,
    max_size=3,
).map(tuple)
QUOTAS = st.builds(
    namespace_inode.Quotas,
    QUOTA,
    QUOTA,
    st.lists(
        st.tuples(st.sampled_from(values.StorageType).map(int), COUNT),
        max_size=3,
        unique_by=lambda one: one[0],
    ).map(tuple),
)


@st.composite
def inodes(draw: st.DrawFn, number: int) -> namespace_inode.INode:
    """Draw a file, a directory or a symlink with whatever such a thing can have."""
    common = (number, draw(NAME), draw(USER), draw(USER), draw(st.integers(0, 0xFFFF)), draw(TIME))
    acl, xattrs = draw(st.none() | ACL), draw(st.none() | XATTRS)
    kind = draw(
        st.sampled_from(
            (
                namespace_inode.INodeFile,
                namespace_inode.INodeFile,
                namespace_inode.INodeDirectory,
                namespace_inode.INodeDirectory,
                namespace_inode.INodeSymlink,
            )
        )
    )
    if kind is namespace_inode.INodeSymlink:
        return namespace_inode.INodeSymlink(*common, draw(TIME), draw(st.binary(max_size=9)))
    if kind is namespace_inode.INodeDirectory:
        return namespace_inode.INodeDirectory(*common, acl, xattrs, draw(QUOTAS))
    _, name, user, group, mode, mtime = common
    size = draw(st.integers(1, 2**40))
    traits = namespace_inode.FileTraits(user, group, mode, draw(st.integers(0, 512)), size)
    file = namespace_inode.INodeFile(name, pack_numbers(number, mtime, draw(TIME)), traits)
    file.blocks = tuple(draw(st.lists(BLOCK, max_size=3)))
    file.acl, file.xattrs = acl, xattrs
    file.storage_policy_id = draw(st.integers(0, 127))
    if draw(st.integers(0, 5)) == 0:
        file.block_type, file.ec_policy_id, file.replication = (
            namespace_inode.STRIPED,
            draw(st.integers(1, 99)),
            0,
        )
    if draw(st.integers(0, 3)) == 0:
        file.under_construction = namespace_inode.UnderConstruction(draw(TEXT), draw(TEXT))
    return file


@st.composite
def namespaces(draw: st.DrawFn) -> Namespace:
    """Draw a tree of up to twenty inodes, and something of all else that a namespace has."""
    namespace = Namespace.empty(draw(USER), draw(USER))
    directories = [namespace.tree.root]
    for number in range(16386, 16386 + draw(st.integers(0, 20))):
        inode = draw(inodes(number))
        parent = draw(st.sampled_from(directories))
        if inode.name in parent.children:
            continue
        namespace.tree.link(parent, inode)
        if isinstance(inode, namespace_inode.INodeDirectory):
            directories.append(inode)
        elif isinstance(inode, namespace_inode.INodeFile) and inode.under_construction is not None:
            namespace.tree.add_lease(inode)
    namespace.last_applied = TxId(draw(st.integers(0, 2**60)))
    namespace.counters = draw(
        st.builds(
            Counters, st.integers(16500, 2**60), COUNT, COUNT, COUNT, COUNT, st.just(-(2**63))
        )
    )
    namespace.rolling_upgrade_start = draw(st.none() | TIME)
    _fill_secrets(draw, namespace)
    _fill_cache_and_policies(draw, namespace)
    _take_snapshots(draw, namespace, directories)
    return namespace


def _fill_secrets(draw: st.DrawFn, namespace: Namespace) -> None:
    secrets = namespace.secrets
    secrets.current_key_id = draw(st.integers(0, 2**31))
    secrets.token_sequence_number = draw(st.integers(0, 2**31))
    for number in range(draw(st.integers(0, 2))):
        content = draw(st.none() | st.binary(max_size=4))
        secrets.keys[number] = values.DelegationKey(number, draw(TIME), content)
        token = values.DelegationTokenIdentifier(
            draw(TEXT), draw(TEXT), draw(TEXT), draw(TIME), draw(TIME), number, number
        )
        secrets.tokens[token] = draw(TIME)


def _fill_cache_and_policies(draw: st.DrawFn, namespace: Namespace) -> None:
    cache = namespace.cache
    for number in range(1, draw(st.integers(1, 3))):
        pool = values.CachePool(
            f"pool{number}", draw(TEXT), draw(TEXT), draw(st.integers(0, 0o777)), draw(COUNT),
            draw(COUNT), draw(st.integers(1, 9)),
        )  # fmt: skip
        cache.pools[pool.name] = pool
        expiry = draw(st.none() | TIME)
        cache.directives[number] = values.CacheDirective(
            number, f"/{draw(TEXT)}", 2, pool.name, expiry
        )
    for policy in namespace.ec_policies.values():
        policy.state = draw(st.sampled_from(EcState))
    if draw(st.booleans()):
        schema = values.EcPolicy(draw(TEXT), 6, 3, 1024, ((draw(TEXT), draw(TEXT)),))
        policy = ErasureCodingPolicy(64, draw(TEXT), schema, draw(st.sampled_from(EcState)))
        namespace.ec_policies[64] = policy


def _take_snapshots(
    draw: st.DrawFn, namespace: Namespace, directories: list[namespace_inode.INodeDirectory]
) -> None:
    """Snapshot a directory, and change it since: ops know what that means for the diffs."""
    if not draw(st.booleans()):
        return
    top = draw(st.sampled_from(directories))
    path = namespace_inode.full_path(top)
    if "\ufffd" in path:  # not a path that an op can name
        return
    base = path.rstrip("/")
    changes: list[ops.Op] = [
        ops.Mkdir(2**40, f"{base}/new", 7, 7, PERMISSION),
        ops.SetPermissions(path, 0o700),
        ops.CreateSnapshot(path, "s1", 9),
        ops.Delete(f"{base}/new", 11),
    ]
    todo: list[ops.Op] = [ops.AllowSnapshot(path), ops.CreateSnapshot(path, "s0", 8)]
    if b"new" not in top.children:
        todo += changes[: draw(st.integers(0, len(changes)))]
    for op in todo:
        namespace.apply(TxId(namespace.last_applied + 1), op)


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    namespaces(),
    st.sampled_from(["", "", ZLIB_CODEC, GZIP_CODEC]),
    st.sampled_from([-64, -65, -67]),
    st.sampled_from([0, 1, 3]),
)
def test_any_namespace_goes_through_an_image_and_comes_out_equal(
    namespace: Namespace, codec: str, layout: int, sub_sections: int
) -> None:
    file = io.BytesIO()
    write_namespace(namespace, file, info(layout), codec=codec, sub_sections=sub_sections)
    again = read_namespace(file)
    assert differences(namespace, again) == []
    assert again.unknown_fields == {}
