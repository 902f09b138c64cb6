"""What administrators do to a real Hadoop cluster: caches, erasure coding, tokens, upgrades."""

from tests.interop.file_workload import BLOCK, Client, Step
from tests.interop.hadoop_server import JavaObject

XOR = "XOR-2-1-1024k"
STRIPED_BLOCK = 1024 * 1024
"""At least a cell of the policy."""


def caches(client: Client) -> None:
    """Cache pools and directives, changed and removed."""
    protocol = client.java.hadoop.hdfs.protocol
    for name in ("pool", "other", "gone"):
        client.fs.addCachePool(protocol.CachePoolInfo(name))
    mode = client.java.hadoop.fs.permission.FsPermission.createImmutable(0o700)
    client.fs.modifyCachePool(
        protocol.CachePoolInfo("pool").setOwnerName("alice").setMode(mode).setLimit(1 << 20)
    )
    client.fs.modifyCachePool(
        protocol.CachePoolInfo("other").setMaxRelativeExpiryMs(10**9).setDefaultReplication(2)
    )
    kept = client.fs.addCacheDirective(_directive(client, "/cached", "pool"))
    gone = client.fs.addCacheDirective(_directive(client, "/cached/a", "pool"))
    client.fs.addCacheDirective(_directive(client, "/cached/b", "gone"))
    client.fs.modifyCacheDirective(
        protocol.CacheDirectiveInfo.Builder().setId(kept).setReplication(3).build()
    )
    client.fs.removeCacheDirective(gone)
    client.fs.removeCachePool("gone")


def _directive(client: Client, path: str, pool: str) -> JavaObject:
    builder = client.java.hadoop.hdfs.protocol.CacheDirectiveInfo.Builder()
    return builder.setPath(client.java.path(path)).setPool(pool).build()


def erasure_coding(client: Client) -> None:
    """Policies of both kinds, and striped files."""
    client.fs.enableErasureCodingPolicy(XOR)
    client.fs.disableErasureCodingPolicy("RS-6-3-1024k")
    erasure = client.java.hadoop.io.erasurecode
    policy = client.java.hadoop.hdfs.protocol.ErasureCodingPolicy
    new = [
        policy(erasure.ECSchema("rs", data, parity), 64 * 1024) for data, parity in ((4, 2), (5, 2))
    ]
    added = client.fs.addErasureCodingPolicies(client.java.array(policy, new))
    names = [added[index].getPolicy().getName() for index in range(2)]
    client.fs.enableErasureCodingPolicy(names[0])
    client.fs.removeErasureCodingPolicy(names[1])
    client.mkdirs("/striped/inherits")
    client.mkdirs("/striped/not")
    client.fs.setErasureCodingPolicy(client.java.path("/striped"), XOR)
    client.fs.setErasureCodingPolicy(client.java.path("/striped/not"), "REPLICATION")
    client.write("/striped/small", 100, block_size=STRIPED_BLOCK)
    client.write("/striped/inherits/large", 3 * STRIPED_BLOCK, block_size=STRIPED_BLOCK)
    client.write("/striped/not/plain", BLOCK)
    client.begin("/striped/open", 2 * STRIPED_BLOCK + 1000, block_size=STRIPED_BLOCK)
    client.mkdirs("/striped/unset")
    client.fs.setErasureCodingPolicy(client.java.path("/striped/unset"), names[0])
    client.fs.unsetErasureCodingPolicy(client.java.path("/striped/unset"))


def tokens(client: Client) -> None:
    configuration = client.fs.getConf()
    given = [client.fs.getDelegationToken(renewer) for renewer in ("root", "root", "other")]
    user = client.java.hadoop.security.UserGroupInformation.getCurrentUser().getShortUserName()
    mine = client.fs.getDelegationToken(user)
    mine.renew(configuration)
    given[1].cancel(configuration)


def encryption(client: Client) -> None:
    """Make an encryption zone with files in it, which are moved and deleted."""
    provider = client.cluster.getNamesystem().getProvider()
    options = client.java.hadoop.crypto.key.KeyProvider.Options(client.fs.getConf())
    provider.createKey("zone-key", options)
    provider.flush()
    client.mkdirs("/zone")
    flags = client.java.gateway.jvm.java.util.EnumSet.of(
        client.java.enum("hdfs.client.CreateEncryptionZoneFlag", "PROVISION_TRASH")
    )
    admin = client.java.hadoop.hdfs.client.HdfsAdmin(client.fs.getUri(), client.fs.getConf())
    admin.createEncryptionZone(client.java.path("/zone"), "zone-key", flags)
    client.write("/zone/secret", BLOCK + 1)
    client.write("/zone/below/secret", 10)
    client.rename("/zone/secret", "/zone/below/moved")
    client.write("/zone/below/secret", 20, overwrite=True)


STEPS: tuple[Step, ...] = (caches, erasure_coding, tokens, encryption)
