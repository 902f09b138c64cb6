"""Random edits about attributes and about the cluster as a whole."""

from namenode_sim.edits import ops
from namenode_sim.edits.values import (
    CacheDirective,
    CachePool,
    DelegationKey,
    DelegationTokenIdentifier,
    EcPolicy,
    StorageType,
)
from namenode_sim.namespace.inode import INodeDirectory, INodeSymlink, full_path
from tests.worlds.author import NAMES, PEOPLE, Author

POLICIES = ("RS-6-3-1024k", "XOR-2-1-1024k")
KEEP, REMOVE = 2**63 - 1, -1


def attribute(author: Author) -> None:
    node = author.node() or author.namespace.tree.root
    path, random = full_path(node), author.random
    if isinstance(node, INodeSymlink):
        return
    is_directory = isinstance(node, INodeDirectory)
    choices: list[ops.Op] = [
        ops.SetPermissions(path, random.randrange(0o2000)),
        ops.SetOwner(path, random.choice((*PEOPLE, "")), random.choice((*PEOPLE, ""))),
        ops.Times(path, random.choice((-1, 5, author.now)), random.choice((-1, 7, author.now))),
        ops.SetAcl(path, author.acl(default=is_directory) if random.random() < 0.7 else ()),
        ops.SetXAttr(path, (author.xattr(),)),
        ops.SetStoragePolicy(path, random.choice((0, 2, 7, 12))),
    ]
    held = node.xattrs or ()
    if held:
        choices.append(ops.RemoveXAttr(path, (random.choice(held),)))
    author.write(random.choice(choices))


def quota(author: Author) -> None:
    """Set or remove a quota; far above what is used, which replay does not look at."""
    path, random = full_path(author.directory()), author.random
    values = (REMOVE, KEEP, 1000, 10**12)
    kinds = (StorageType.SSD, StorageType.DISK, StorageType.ARCHIVE)
    if random.random() < 0.1 and path != "/":
        author.write(random.choice((ops.SetNsQuota(path, 77), ops.ClearNsQuota(path))))
    elif random.random() < 0.5:
        kept = (KEEP, 1000) if path == "/" else values
        author.write(ops.SetQuota(path, random.choice(kept), random.choice(values)))
    elif path != "/":
        limit = random.choice((REMOVE, 1000))
        author.write(ops.SetQuotaByStorageType(path, random.choice(kinds), limit))


def cache(author: Author) -> None:
    state, random, name = author.namespace.cache, author.random, author.random.choice(NAMES)
    if name not in state.pools:
        author.write(ops.AddCachePool(CachePool(name, "alice", "staff", 0o750, 100, 1000, 2)))
        return
    change = CachePool(name, limit=random.choice((None, 5)), mode=random.choice((None, 0o700)))
    # A path of its own: removing a pool makes Hadoop forget other pools' directives for the path.
    number = state.next_directive_id
    new = CacheDirective(number, f"/{number}", 2, name, author.now)
    choices: list[ops.Op] = [ops.ModifyCachePool(change), ops.AddCacheDirective(new)]
    if random.random() < 0.3:
        choices.append(ops.RemoveCachePool(name))
    if state.directives:
        number = random.choice(list(state.directives))
        choices.append(ops.ModifyCacheDirective(CacheDirective(number, replication=3)))
        choices.append(ops.RemoveCacheDirective(number))
    author.write(random.choice(choices))


def erasure_coding(author: Author) -> None:
    """Add, enable, disable and remove policies."""
    random = author.random
    policy = EcPolicy("rs", random.randint(2, 5), 2, 64 * 1024)
    name = random.choice([known.name for known in author.namespace.ec_policies.values()])
    choices: list[ops.Op] = [
        ops.EnableErasureCodingPolicy(name),
        ops.DisableErasureCodingPolicy(name),
        ops.AddErasureCodingPolicy(policy),
    ]
    user_defined = [p.name for p in author.namespace.ec_policies.values() if p.id >= 64]
    if user_defined:
        choices.append(ops.RemoveErasureCodingPolicy(random.choice(user_defined)))
    author.write(random.choice(choices))


def secrets(author: Author) -> None:
    """Make keys and tokens; all of them outlive the test."""
    state, random = author.namespace.secrets, author.random
    later = 4_000_000_000_000
    if not state.keys or random.random() < 0.2:
        number = state.current_key_id + 1
        author.write(ops.UpdateMasterKey(DelegationKey(number, later, bytes([number]) * 8)))
        return
    if random.random() < 0.1:
        author.write(ops.SetGenstampV1(author.namespace.counters.generation_stamp_v1 + 1))
    token = DelegationTokenIdentifier(
        "alice", "bob", "", author.now, later, state.token_sequence_number + 1, state.current_key_id
    )
    choices: list[ops.Op] = [ops.GetDelegationToken(token, later)]
    if state.tokens:
        held = random.choice(list(state.tokens))
        choices += [ops.RenewDelegationToken(held, later - 1), ops.CancelDelegationToken(held)]
    author.write(random.choice(choices))


ATTRIBUTE_DEEDS = (attribute, attribute, attribute, attribute, quota)
ADMIN_DEEDS = (cache, erasure_coding, secrets)
