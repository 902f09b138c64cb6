"""A whole cluster of ours, and Hadoop's own programs for administrators run against it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.local.cluster.cluster import Cluster
from tests.interop.hadoop_server import Hadoop, JavaObject

DFSADMIN = "hdfs.tools.DFSAdmin"
SHELL = "fs.FsShell"
DFSCK = "hdfs.tools.DFSck"
CACHE_ADMIN = "hdfs.tools.CacheAdmin"
STORAGE_POLICY_ADMIN = "hdfs.tools.StoragePolicyAdmin"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended, and all that it printed."""

    status: int
    said: str


@dataclass(frozen=True, slots=True)
class OurCluster:
    """A cluster of ours, and a JVM with Hadoop's programs."""

    cluster: Cluster
    hadoop: Hadoop

    def configuration(self, more: Mapping[str, str] | None = None) -> JavaObject:
        """Return the configuration of the cluster's clients."""
        configuration = self.hadoop.hadoop.conf.Configuration(False)
        for name in ("core-default.xml", "hdfs-default.xml"):
            configuration.addResource(name)
        for name in ("core-site.xml", "hdfs-site.xml"):
            configuration.addResource(self.hadoop.path(str(self.cluster.conf_dir / name)))
        for key, value in (more or {}).items():
            configuration.set(key, value)
        return configuration

    def run(self, program: str, *words: str, more: Mapping[str, str] | None = None) -> Ran:
        """Run a program below ``org.apache.hadoop`` in the JVM, as its ``main`` would."""
        tool = self.hadoop.hadoop
        for name in program.split("."):
            tool = getattr(tool, name)
        return self._caught(lambda: tool(self.configuration(more)).run(self.hadoop.strings(*words)))

    def run_hidden(self, name: str, *words: str, more: Mapping[str, str] | None = None) -> Ran:
        """Run a program whose class, with its whole name, is not public."""
        jvm = self.hadoop.gateway.jvm
        found = jvm.java.lang.Class.forName(name)
        made = found.getDeclaredConstructor(self.hadoop.array(jvm.java.lang.Class, []))
        made.setAccessible(True)
        tool = made.newInstance(self.hadoop.array(jvm.java.lang.Object, []))
        run, configuration = self.hadoop.hadoop.util.ToolRunner.run, self.configuration(more)
        return self._caught(lambda: run(configuration, tool, self.hadoop.strings(*words)))

    def _caught(self, run: Callable[[], int]) -> Ran:
        jvm = self.hadoop.gateway.jvm
        system, caught = jvm.java.lang.System, jvm.java.io.ByteArrayOutputStream()
        out, err = system.out, system.err
        stream = jvm.java.io.PrintStream(caught, True)
        system.setOut(stream)
        system.setErr(stream)
        try:
            status = run()
        finally:
            system.setOut(out)
            system.setErr(err)
        return Ran(status, str(caught.toString()))

    def well(self, program: str, *words: str) -> str:
        """Run a program, which must succeed; return what it printed."""
        ran = self.run(program, *words)
        assert ran.status == 0, f"{program} {words}: {ran.said}"
        return ran.said

    def close_shared(self) -> None:
        """Close the file system that programs share, by the name of the cluster alone."""
        self.hadoop.hadoop.fs.FileSystem.get(self.configuration()).close()

    def dfsadmin(self, *words: str) -> str:
        return self.well(DFSADMIN, *words)

    def shell(self, *words: str) -> str:
        return self.well(SHELL, *words)

    def images(self) -> dict[str, list[Path]]:
        """Return the images of each NameNode, the newest last."""
        layout = self.cluster.layout
        return {
            name: sorted(layout.name_dir(name).rglob("fsimage_" + "[0-9]" * 19))
            for name in layout.namenodes
        }


@contextmanager
def programs_on(cluster: Cluster, hadoop: Hadoop) -> Iterator[OurCluster]:
    """Give a running cluster, and a JVM with Hadoop's programs.

    They share a file system by the name of the cluster alone: it is closed before, since another
    cluster of that name may have left it, and after, since the JVM ends 30 s late if it is open.
    """
    ours = OurCluster(cluster, hadoop)
    ours.close_shared()
    try:
        yield ours
    finally:
        ours.close_shared()
