"""Files on DataNodes of both kinds with Kerberos, while the active of either kind is killed."""

from pathlib import Path

import pytest

from deploy.local.workload.file_workload import FileWorkload
from deploy.local.workload.java_client import open_java_client, start_java_client
from tests.ha.security.kdc import Kdc
from tests.interop.mixed.programs import Kind
from tests.interop.mixed.secured import secured_cluster
from tests.local_services import wait_until_whole
from tests.needs import HADOOP_SERVER, KDC, OTHER_USER

OURS, HADOOP = Kind.OURS, Kind.HADOOP
CALLS = 10
STATIC_USER = "org.apache.hadoop.http.lib.StaticUserWebFilter"
SECONDS = 120.0
pytestmark = [
    pytest.mark.interop, pytest.mark.long, pytest.mark.timeout(900),
    KDC.mark, HADOOP_SERVER.mark, OTHER_USER.mark,
]  # fmt: skip


@pytest.mark.parametrize("namenodes", [OURS, HADOOP])
@pytest.mark.parametrize("by_keys", [False, True])
def test_files_are_whole_on_datanodes_of_both_kinds(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namenodes: Kind, *, by_keys: bool
) -> None:
    """Pipelines and copies go between the kinds, by block tokens and the handshake of SASL.

    Its user is a block token, or, ``by_keys``, a data encryption key.
    """
    more = {"dfs.encrypt.data.transfer": str(by_keys).lower()}
    with secured_cluster(realm, tmp_path, more, monkeypatch, datanodes=3) as cluster:
        # Its JMX page, by which the start is seen, asks for no ticket.
        cluster.programs.hadoops_datanode_keys["hadoop.http.filter.initializers"] = STATIC_USER
        first, second, _ = cluster.layout.datanodes
        datanodes = {first: OURS, second: HADOOP}
        cluster.up(journalnodes=OURS, namenodes=namenodes, zkfcs=OURS, others=datanodes)
        programs = cluster.programs
        process = start_java_client(
            cluster.supervisor, java=programs.java, conf_dir=programs.conf_dir
        )
        with open_java_client(process) as client:
            files = FileWorkload(client, "/files", pause_seconds=0.1)
            files.start()
            try:
                files.wait_for_more(CALLS, deadline_seconds=SECONDS)
                active = cluster.active()
                cluster.kill(active)
                files.wait_for_more(CALLS, deadline_seconds=SECONDS)
                assert cluster.active() != active
                wait_until_whole(files)
                files.stop()
                assert files.check_all() > 0
                assert files.wrong == []
                assert files.errors() == ()
            finally:
                files.abandon()
