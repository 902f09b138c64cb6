"""Hadoop's own lists of command lines pass on a whole cluster, but for what fails on Hadoop.

CI plays a selection (test_admin_commands.py).
"""

from pathlib import Path
from typing import Final

import pytest

from deploy.local.cluster.cluster import open_cluster
from deploy.local.cluster.ports import HOST
from tests.interop import upstream_tests
from tests.needs import FILES_OF_HADOOP, JAVA_COMPILER, UPSTREAM_TESTS

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.timeout(3000),
    FILES_OF_HADOOP.mark,
    JAVA_COMPILER.mark,
    UPSTREAM_TESTS.mark,
]

_GROUPS: Final = (
    "user=mygroup;user1=group1,group2;user2=group2,group3;user3=group3,group4;theDoctor=tardis;"
    "rose=powellestates;bob=groupY,groupZ;super=supergroup;barUser=bar;foo=fooGroup"
)
KEYS: Final = {
    "dfs.namenode.fs-limits.min-block-size": "0",
    "hadoop.user.group.static.mapping.overrides": _GROUPS,
    "hadoop.security.authorization": "true",
}
NO_INHERITANCE: Final = {"dfs.namenode.posix.acl.inheritance.enabled": "false"}
LISTS: Final = {
    "TestHDFSCLI": (672, {}),
    "TestXAttrCLI": (25, {}),
    "TestDeleteCLI": (2, {}),
    "TestCacheAdminCLI": (22, {}),
    "TestAclCLI": (25, NO_INHERITANCE),
    "TestAclCLIWithPosixAclInheritance": (26, {}),
}
"""How many cases each has, and what its cluster is configured with."""
FAIL_ON_HADOOP: Final = {"TestHDFSCLI": {593, 629}}


@pytest.mark.parametrize("name", LISTS)
def test_a_whole_list_passes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count, own = LISTS[name]
    monkeypatch.setenv("HADOOP_LOG_DIR", str(tmp_path))
    with open_cluster(tmp_path / "c", datanodes=3, more_keys=KEYS | own) as cluster:
        cluster.up()
        active = cluster.layout.namenodes[cluster.wait_for_active()]
        uri = f"hdfs://{HOST}:{active.rpc}"
        found = upstream_tests.run_list(tmp_path, cluster.conf_dir, uri, name, seconds=2500)
        cluster.down()
    assert len(found) == count, (tmp_path / "console.txt").read_text()
    assert {case for case, passed in found.items() if not passed} == FAIL_ON_HADOOP.get(name, set())
