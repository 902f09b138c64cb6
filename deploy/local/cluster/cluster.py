"""A cluster of real processes: ZooKeeper, JournalNodes, NameNodes with ZKFCs, DataNodes."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import deploy
from deploy.local.cluster import layout as layouts
from deploy.local.cluster import site, state
from deploy.local.cluster.certificates import (
    ADMIN,
    WEB,
    authority_folder,
    make_certificates,
    tls_folder,
)
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import Java, find_java
from deploy.local.cluster.layout import JOURNALNODES, NAMENODES, Layout
from deploy.local.cluster.ports import ensure_free
from deploy.local.cluster.processes import ManagedProcess, Supervisor, wait_until
from deploy.local.cluster.state import NameNodeStatus
from deploy.local.cluster.zookeeper import ZooKeeper, start_zookeeper, wait_for_zookeeper
from ha.conf.keys.security import SECURITY_MODE, TLS_DIR, Mode
from ha.record import dataclass, field
from ha.security.own_tls import act_as

ZOOKEEPER = "zookeeper"
_LOOKED_AT_SECONDS = 10.0
START_SECONDS = 120.0
"""How long one part may take to come up; a loaded machine needs more than an idle one."""

_FORMATTED = "formatted"
_TOOLS = ("bash", "tr", "awk", "sleep")


def zkfc_of(namenode: str) -> str:
    return f"zkfc-{namenode}"


@dataclass(slots=True)
class Cluster:
    """One local cluster; use it in a ``with``, so that nothing of it stays behind.

    The parts are named zookeeper, jn1-jn3, nn1, nn2, zkfc-nn1, zkfc-nn2, dn1, dn2 ... and web.
    ``progress`` holds what is known of each part, for code that draws a picture of the start.
    """

    layout: Layout
    java: Java
    supervisor: Supervisor
    more_keys: Mapping[str, str] = field(default_factory=dict)
    """Of hdfs-site.xml, in place of our own of the same name."""
    commands: dict[str, Sequence[str]] = field(default_factory=dict)
    """Command lines of DataNodes that are not ours, by name."""
    web: bool = False
    """Whether the page of the whole cluster is served, too."""
    progress: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> "Cluster":
        self.supervisor.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.supervisor.close()
        if authority_folder(self.layout).exists():
            act_as(None, Mode.AUTO)

    @property
    def datanodes(self) -> tuple[str, ...]:
        """The names of the DataNodes, of which there may be none."""
        return tuple(self.layout.datanodes)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of all parts, in the order of the start."""
        zkfcs = map(zkfc_of, NAMENODES)
        page = (WEB,) if self.web else ()
        return (ZOOKEEPER, *JOURNALNODES, *NAMENODES, *self.datanodes, *zkfcs, *page)

    @property
    def conf_dir(self) -> Path:
        """What clients give as --conf-dir."""
        return self.layout.conf_dir

    def process(self, name: str) -> ManagedProcess:
        try:
            return self.supervisor.processes[name]
        except KeyError:
            known = ", ".join(sorted(self.supervisor.processes)) or "none"
            raise LocalClusterError(f"Looked for a part named {name}; started: {known}") from None

    def up(self) -> None:
        """Start everything, formatting what is new, until one NameNode is active.

        Raises LocalClusterError with the end of the log of the part that failed.
        """
        for name in self.parts:
            self.progress[name] = "waiting"
        ensure_free(self.layout.all_ports())
        secure = authority_folder(self.layout).exists()
        if secure:
            # Loaded here, as it loads the library of logs, which most commands do without.
            from ha.security.tls_files import TlsFiles

            make_certificates(self.layout)
            act_as(TlsFiles(tls_folder(self.layout, ADMIN), _LOOKED_AT_SECONDS), Mode.STRICT)
        tls = {TLS_DIR.name: str(tls_folder(self.layout, "")), SECURITY_MODE.name: Mode.STRICT}
        keys = tls if secure else {}
        site.write_conf_dir(self.layout, {**keys, **self.more_keys})
        self._start_missing()

    def heal(self) -> None:
        """Thaw and start whatever does not run, until all is as after ``up``."""
        for process in self.supervisor.processes.values():
            process.thaw()
        self._start_missing()

    def down(self) -> None:
        """Stop everything, ZKFCs first and together, so that there is no failover on the way."""
        zkfcs = tuple(map(zkfc_of, NAMENODES))
        for names in ((WEB,), zkfcs, self.datanodes, NAMENODES, JOURNALNODES, (ZOOKEEPER,)):
            self.supervisor.stop_together(names)

    def start(self, name: str) -> ManagedProcess:
        """Start one part that was killed or stopped, and wait until it answers."""
        if name == ZOOKEEPER:
            server = self._launch_zookeeper()
            wait_for_zookeeper(server, deadline_seconds=START_SECONDS)
            return server.process
        process = self.launch(name)
        self.wait_for_answer(name)
        return process

    def kill(self, name: str) -> float:
        """Kill a part; return the wall-clock time just before the SIGKILL, in seconds."""
        process = self.process(name)
        before = time.time()
        process.kill()
        self.progress[name] = "killed"
        return before

    def namenode_status(self, name: str, *, deadline_seconds: float = 1.0) -> NameNodeStatus | None:
        """Return what a NameNode says of itself, or None where it does not answer."""
        return state.namenode_status(self.layout.url(name), deadline_seconds=deadline_seconds)

    def active_namenodes(self) -> list[str]:
        """Return those that call themselves active; anything but one is a finding."""
        statuses = {name: self.namenode_status(name) for name in NAMENODES}
        return [name for name, each in statuses.items() if each and each.state == "active"]

    def wait_for_active(
        self,
        *,
        deadline_seconds: float = START_SECONDS,
        abandon: Callable[[], str | None] | None = None,
    ) -> str:
        """Return the active; give up where ``abandon``, or a part that has ended, says why."""
        (active,) = wait_until(
            self.active_namenodes,
            what="a NameNode to become active",
            deadline_seconds=deadline_seconds,
            abandon=abandon or self._ended_early,
        )
        return active

    def wait_for_ready_standby(
        self, name: str, *, deadline_seconds: float = START_SECONDS
    ) -> NameNodeStatus:
        """Wait until a NameNode is standby and ready to take over."""

        def ready() -> NameNodeStatus | None:
            status = self.namenode_status(name)
            well = status is not None and status.state == "standby" and status.ready
            return status if well else None

        return wait_until(
            ready, what=f"{name} to be a ready standby", deadline_seconds=deadline_seconds
        )

    def wait_for_candidate(self, name: str, *, deadline_seconds: float = START_SECONDS) -> None:
        """Wait until a NameNode's ZKFC finds it healthy and takes part in the election."""
        wait_until(
            lambda: state.zkfc_is_candidate(self.layout.url(zkfc_of(name))),
            what=f"the ZKFC of {name} to find it healthy and stand in the election",
            deadline_seconds=deadline_seconds,
        )

    def wait_for_datanode(self, name: str, *, deadline_seconds: float = START_SECONDS) -> None:
        """Wait until a DataNode obeys the active NameNode and is known to the other."""
        wait_until(
            lambda: state.datanode_serves(self.layout.url(name)),
            what=f"{name} to be taken by both NameNodes",
            deadline_seconds=deadline_seconds,
            abandon=self.process(name).ended_early,
        )
        self.progress[name] = "serving"

    def wait_for_answer(self, name: str, *, deadline_seconds: float = START_SECONDS) -> None:
        """Wait until /status shows that a part has loaded; raise LocalClusterError if it ends."""
        url = self.layout.url(name)
        wait_until(
            lambda: state.has_loaded(url),
            what=f"{name} to answer on {url}/status",
            deadline_seconds=deadline_seconds,
            abandon=self.process(name).ended_early,
        )
        self.progress[name] = "up"

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of one of our programs with this cluster's configuration."""
        program, *rest = arguments
        base = [sys.executable, "-m", "nnha", program]
        return [*base, "--conf-dir", str(self.conf_dir), *rest]

    def logs(self) -> dict[str, Path]:
        return {name: process.log for name, process in self.supervisor.processes.items()}

    def _start_missing(self) -> None:
        """Start what does not run, all parts of a kind at once, and wait until all is well."""
        server = self._launch_zookeeper() if self._lacks(ZOOKEEPER) else None
        self._launch_and_wait(JOURNALNODES)
        if server is not None:
            wait_for_zookeeper(server, deadline_seconds=START_SECONDS)
            self.progress[ZOOKEEPER] = "serving"
        if not (self.layout.directory / _FORMATTED).exists():
            self._format()
        self._launch_and_wait(NAMENODES)
        page = (WEB,) if self.web else ()
        self._launch_and_wait((*self.datanodes, *map(zkfc_of, NAMENODES), *page))
        fenced = set(NAMENODES)

        def ended_early() -> str | None:
            # The NameNode that was active before the stop is fenced first, and is killed on a busy
            # machine, where it answers too late after its start: it starts again, once.
            for name in filter(self._lacks, tuple(fenced)):
                fenced.discard(name)
                self.launch(name)
            return self._ended_early()

        active = self.wait_for_active(abandon=ended_early)
        ended_early()
        self.progress[active] = "active"
        for name in NAMENODES:
            self.wait_for_candidate(name)
            if name != active:
                self.wait_for_ready_standby(name)
                self.progress[name] = "standby"
        for name in self.datanodes:
            self.wait_for_datanode(name)

    def _launch_and_wait(self, names: Sequence[str]) -> None:
        for name in filter(self._lacks, names):
            self.launch(name)
        for name in names:
            self.wait_for_answer(name)

    def _lacks(self, name: str) -> bool:
        process = self.supervisor.processes.get(name)
        return process is None or not process.running

    def _ended_early(self) -> str | None:
        reasons = (process.ended_early() for process in self.supervisor.processes.values())
        return next((reason for reason in reasons if reason), None)

    def _launch_zookeeper(self) -> ZooKeeper:
        self.progress[ZOOKEEPER] = "starting"
        return start_zookeeper(self.supervisor, java=self.java, port=self.layout.zookeeper)

    def launch(self, name: str) -> ManagedProcess:
        """Start one part other than ZooKeeper, and wait for nothing."""
        self.progress[name] = "starting"
        if name in self.layout.journalnodes:
            return self._run_daemon(
                name, "journalnode", site.journalnode_overrides(self.layout, name)
            )
        if name in self.commands:
            return self.supervisor.start(name, self.commands[name], environment=_environment())
        if name in self.layout.datanodes:
            return self._run_daemon(name, "datanode", site.datanode_overrides(self.layout, name))
        if name == WEB:
            return self._run_daemon(name, "web", {})
        program = "namenode" if name in self.layout.namenodes else "zkfc"
        own_id = {"dfs.ha.namenode.id": name.removeprefix("zkfc-")}
        return self._run_daemon(name, program, own_id)

    def _run_daemon(self, name: str, program: str, keys: Mapping[str, str]) -> ManagedProcess:
        keys = {**keys, **self._tls_of(name)}
        overrides = [part for key, value in keys.items() for part in ("-D", f"{key}={value}")]
        return self.supervisor.start(
            name, self.command(program, *overrides), environment=_environment()
        )

    def _tls_of(self, name: str) -> Mapping[str, str]:
        """Return the variable with a daemon's certificate folder, if the cluster is secure."""
        folder = tls_folder(self.layout, name)
        return {TLS_DIR.name: str(folder)} if folder.exists() else {}

    def _format(self) -> None:
        """Format the journal and nn1, give nn2 the same image, make the znode; each once."""
        first, *others = NAMENODES
        keys = {"dfs.ha.namenode.id": first, **self._tls_of(first)}
        own_id = tuple(part for key, value in keys.items() for part in ("-D", f"{key}={value}"))
        steps = {
            "format-namenode": ("namenode", "--format", "--non-interactive", *own_id),
            "format-zk": ("zkfc", "--format-zk", "--non-interactive", *own_id),
        }
        for name, arguments in steps.items():
            self.supervisor.start(name, self.command(*arguments), environment=_environment())
        for name in steps:
            process = self.process(name)
            if process.wait(START_SECONDS) != 0:
                raise LocalClusterError(f"Tried to {name}; {process.ended_early()}")
            self.supervisor.forget(name)
        for other in others:
            target = self.layout.name_dir(other)
            shutil.copytree(self.layout.name_dir(first), target)
            (target / "in_use.lock").unlink(missing_ok=True)
        (self.layout.directory / _FORMATTED).touch()


def open_cluster(
    directory: Path,
    *,
    base_port: int | None = None,
    more_keys: Mapping[str, str] | None = None,
    datanodes: int = 0,
    secure: bool = False,
    web: bool = False,
) -> Cluster:
    """Return the cluster kept in a directory, or a new one of ``datanodes`` DataNodes, not started.

    ``secure``: its daemons have certificates, from now on.  ``web``: it has a page.

    Raises LocalClusterError where the directory holds one that was never finished.
    """
    lacking = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if lacking:
        raise LocalClusterError(
            f"Looked on PATH for what fencing by shell(...) runs; not found: {', '.join(lacking)}. "
            f"Without it no failover could succeed; install it"
        )
    directory = directory.resolve()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    layout = layouts.load(directory)
    if layout is None:
        layout = layouts.plan(directory, base_port=base_port, datanodes=datanodes)
        layout.save()
    elif not (directory / _FORMATTED).exists() and any(
        layout.name_dir(name).exists() for name in NAMENODES
    ):
        raise LocalClusterError(
            f"Read the cluster in {directory}; its formatting was never finished. "
            f"Remove the directory, or give another one"
        )
    if secure:
        make_certificates(layout)
    return Cluster(
        layout=layout,
        java=find_java(wrapper_directory=directory),
        supervisor=Supervisor(directory),
        more_keys=dict(more_keys or {}),
        web=web,
    )


def _environment() -> dict[str, str]:
    """Let the daemons import us wherever they run, also from a checkout that is not installed."""
    root = Path(deploy.__file__).resolve().parent.parent
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{root}{os.pathsep}{before}" if before else str(root)}
