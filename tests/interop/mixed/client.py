"""A Java client that writes to a mixed cluster all the time, and what became of its writes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from deploy.local.workload.audit import AuditResult, judge, missing_from_tree, read_journal
from deploy.local.workload.java_client import JavaClient, open_java_client, start_java_client
from deploy.local.workload.workload import Workload
from tests.interop.mixed.cluster import MixedCluster

WARM_UP_WRITES = 100
WRITE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Writing:
    """The client's JVM and its threads.  Files stay empty, so that no DataNode is needed."""

    cluster: MixedCluster
    client: JavaClient
    workload: Workload

    def missing_now(self) -> list[str]:
        """Return the acknowledged writes that the active does not list; pause the client for it."""
        with self.workload.paused():
            return missing_from_tree(self.workload.writes(), self.client.tree(self.workload.root))

    def verdict(self) -> AuditResult:
        """End the writing, and hold each write against the listing and the JournalNodes' files."""
        self.workload.stop()
        tree = self.client.tree(self.workload.root)
        return judge(self.workload.writes(), tree, read_journal(self.cluster.layout))


@contextmanager
def writing(cluster: MixedCluster, *, pause_seconds: float = 0.01) -> Iterator[Writing]:
    programs = cluster.programs
    process = start_java_client(cluster.supervisor, java=programs.java, conf_dir=programs.conf_dir)
    with open_java_client(process) as client:
        workload = Workload(client, f"/nnha/{time.time_ns()}", pause_seconds=pause_seconds)
        workload.start()
        try:
            workload.wait_for_acknowledged(WARM_UP_WRITES, deadline_seconds=WRITE_SECONDS)
            yield Writing(cluster, client, workload)
        finally:
            workload.abandon()
