"""Java's WebHdfsFileSystem on a cluster of ours with Kerberos."""

from collections.abc import Iterator

import pytest

from deploy.local.cluster.cluster import open_cluster
from tests.ha.security.kdc import REALM, Kdc
from tests.interop.hadoop_server import running_hadoop
from tests.interop.our_cluster import OurCluster, programs_on
from tests.interop.test_kerberos import keys, opened
from tests.needs import HADOOP_SERVER, KDC

pytestmark = [pytest.mark.interop, pytest.mark.cluster, KDC.mark, HADOOP_SERVER.mark]


@pytest.fixture
def ours(realm: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurCluster]:
    web = {
        "dfs.web.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
        "dfs.web.authentication.kerberos.keytab": str(realm.keytab("HTTP/localhost")),
    }
    cluster = open_cluster(
        tmp_path_factory.mktemp("webhdfs"), datanodes=1, more_keys=keys(realm) | web
    )
    with cluster, running_hadoop(tmp_path_factory.mktemp("hadoop")) as hadoop:
        krb5 = str(realm.krb5_conf)
        hadoop.gateway.jvm.java.lang.System.setProperty("java.security.krb5.conf", krb5)
        cluster.up()
        with programs_on(cluster, hadoop) as made:
            yield made


def test_javas_webhdfs_fetches_a_token_by_its_ticket(ours: OurCluster, realm: Kdc) -> None:
    """It has bytes by the token alone, also after a failover to a NameNode that it never asked."""
    path, cluster = ours.hadoop.path, ours.cluster
    admin = opened(ours, realm, "nn/localhost", protection="privacy")
    admin.mkdirs(path("/web"))
    admin.setOwner(path("/web"), "alice", "users")
    pages = {
        f"dfs.namenode.http-address.ns1.{name}": f"localhost:{one.http}"
        for name, one in cluster.layout.namenodes.items()
    }
    conf = ours.configuration({"fs.defaultFS": "webhdfs://ns1", **pages})
    client = ours.hadoop.compiled("nnha.KerberosClient")
    alice = client.open(conf, f"alice@{REALM}", str(realm.keytab("alice")), "")
    for name in ("before", "after"):
        out = alice.create(path(f"/web/{name}"))
        out.writeUTF(f"{name} a failover")
        out.close()
        assert alice.open(path(f"/web/{name}")).readUTF() == f"{name} a failover"
        assert alice.getFileStatus(path(f"/web/{name}")).getOwner() == "alice"
        if name == "before":
            (active,) = cluster.active_namenodes()
            cluster.kill(active)
    for files in (alice, admin):
        files.close()
