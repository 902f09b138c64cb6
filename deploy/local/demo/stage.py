"""A cluster with a writing Java client, as the demo, the soak and the tests use it."""

import contextlib
import io
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.places import remember
from deploy.local.demo.screen import Screen
from deploy.local.workload.audit import AuditResult, judge, missing_from_tree, read_journal
from deploy.local.workload.file_workload import FileWorkload
from deploy.local.workload.java_client import JavaClient, open_java_client, start_java_client
from deploy.local.workload.workload import Workload
from ha.cli.hadoop import haadmin
from ha.record import dataclass
from ha.security.own_tls import secure_url


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that stands while faults are played."""

    cluster: Cluster
    client: JavaClient
    workload: Workload
    files: FileWorkload
    screen: Screen

    def missing_now(self) -> list[str]:
        """Return the acknowledged writes that the active does not list; pause the client for it."""
        with self.workload.paused():
            return missing_from_tree(self.workload.writes(), self.client.tree(self.workload.root))

    def verdict(self) -> AuditResult:
        """Judge every acknowledged write; call it when the workload has stopped."""
        tree = self.client.tree(self.workload.root)
        return judge(self.workload.writes(), tree, read_journal(self.cluster.layout))


@contextlib.contextmanager
def staged(
    directory: Path,
    screen: Screen,
    more_keys: Mapping[str, str] | None = None,
    *,
    datanodes: int = 0,
    secure: bool = False,
    web: bool = False,
    prepare: Callable[[Cluster], None] | None = None,
) -> Iterator[Stage]:
    """Bring the cluster up, together with the client's JVM; everything is stopped at the end.

    ``more_keys`` go into hdfs-site.xml, in place of the local cluster's own of the same name;
    ``web``: the page of the cluster is served, and its address shown; ``prepare`` is called before
    anything of the cluster is started. Raises LocalClusterError where a part does not come up.
    """
    with open_cluster(
        directory, more_keys=more_keys, datanodes=datanodes, secure=secure, web=web
    ) as cluster:
        remember(cluster.layout.directory)
        if prepare is not None:
            prepare(cluster)
        screen.say(f"logs and data stay in [bold]{cluster.layout.directory}[/]")
        screen.say(f"Java {cluster.java.version} from {cluster.java.source}")
        with screen.watching(cluster):
            # The JVM warms up while the cluster starts; it sends no request before ``connect``.
            process = start_java_client(
                cluster.supervisor, java=cluster.java, conf_dir=cluster.conf_dir
            )
            cluster.up()
        screen.parts(cluster)
        if web:
            screen.say(f"the cluster as a page: [bold]{secure_url(cluster.layout.url('web'))}/[/]")
        with open_java_client(process) as client:
            root = f"/nnha/{time.time_ns()}"
            workload = Workload(client, root=root)
            files = FileWorkload(client, root=f"{root}-files")
            try:
                yield Stage(cluster, client, workload, files, screen)
                cluster.down()
            finally:
                workload.abandon()
                files.abandon()


def request_failover(cluster: Cluster, old: str, new: str) -> None:
    """Run `haadmin -failover old new` in this process; raise LocalClusterError if it fails."""
    ask_for_failover(cluster.conf_dir, old, new)


def ask_for_failover(conf_dir: Path, old: str, new: str) -> None:
    """Ask for a failover in any cluster that has this configuration."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = haadmin.run(("--conf-dir", str(conf_dir), "-failover", old, new))
    if code:
        raise LocalClusterError(
            f"Asked for a failover from {old} to {new}; haadmin ended with {code}:\n"
            f"{printed.getvalue().strip()}"
        )
