"""Hadoop's own NameNode, DataNodes and offline viewers in one JVM, driven from Python.

py4j's gateway runs together with Hadoop's classes, so nothing is compiled.
"""

import logging
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from deploy.local.cluster.java import class_path, find_jars, find_java, quick_start_flags
from deploy.local.cluster.processes import wait_until
from deploy.local.cluster.zookeeper import LOG4J2
from tests.interop.hadoop_jars import server_jar

JavaObject: TypeAlias = Any
"""Something in the JVM; py4j finds its members at run time."""

JARS = (
    "hadoop-client-api-*.jar",
    "hadoop-client-runtime-*.jar",
    "slf4j-api-*.jar",
    "log4j-*.jar",
    "jcl-over-slf4j-*.jar",
    "commons-lang3-*.jar",
    "py4j-*.jar",
)
HEAP_MEGABYTES = 768
COMPILE_SECONDS = 120.0
SOURCES = Path(__file__).parent / "java"

SMALL_AND_LOCAL = {
    # A few kilobytes make files of several blocks.
    "dfs.blocksize": "4096",
    "dfs.namenode.fs-limits.min-block-size": "1024",
    "dfs.bytes-per-checksum": "512",
    "dfs.namenode.accesstime.precision": "1",
    "dfs.namenode.rpc-address": "127.0.0.1:0",
    "dfs.namenode.http-address": "127.0.0.1:0",
    "dfs.namenode.num.checkpoints.retained": "1000",
    "dfs.namenode.delegation.token.always-use": "true",
    "dfs.webhdfs.enabled": "false",
    "ipc.client.connect.max.retries": "3",
    "hadoop.security.group.mapping": "org.apache.hadoop.security.JniBasedUnixGroupsMapping"
    "WithFallback",
}

logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs exceptions that we raise anyway


@dataclass(slots=True)
class Hadoop:
    """The JVM; ``hadoop`` is the Java package ``org.apache.hadoop``."""

    gateway: JavaObject
    folder: Path
    classes: dict[str, JavaObject] = field(default_factory=dict)
    """Those that were compiled; py4j takes two of one name for the same."""

    @property
    def hadoop(self) -> JavaObject:
        """The package ``org.apache.hadoop``."""
        return self.gateway.jvm.org.apache.hadoop

    def strings(self, *texts: str) -> JavaObject:
        """Return a ``String[]``."""
        return self.array(self.gateway.jvm.java.lang.String, texts)

    def array(self, kind: JavaObject, items: Sequence[JavaObject]) -> JavaObject:
        """Return a Java array of a class."""
        array = self.gateway.new_array(kind, len(items))
        for index, item in enumerate(items):
            array[index] = item
        return array

    def enum(self, kind: str, name: str) -> JavaObject:
        """Return a constant of the enum ``kind``, a class name below ``org.apache.hadoop``."""
        cls = self.gateway.jvm.java.lang.Class.forName(f"org.apache.hadoop.{kind}")
        return cls.getField(name).get(None)

    def compiled(self, name: str) -> JavaObject:
        """Return a new object of a class below ``java`` here, compiled once against Hadoop's."""
        jvm, folder = self.gateway.jvm, self.folder / "classes"
        if name not in self.classes:
            folder.mkdir(exist_ok=True)
            class_path = jvm.java.lang.System.getProperty("java.class.path")
            compile_java(SOURCES / f"{name.replace('.', '/')}.java", class_path, folder)
            urls = self.array(jvm.java.net.URL, [jvm.java.net.URL(f"{folder.as_uri()}/")])
            self.classes[name] = jvm.java.net.URLClassLoader(urls).loadClass(name)
        made = self.classes[name].getConstructor(self.array(jvm.java.lang.Class, []))
        return made.newInstance(self.array(jvm.java.lang.Object, []))

    def path(self, path: str) -> JavaObject:
        return self.hadoop.fs.Path(path)

    def configuration(self, settings: Mapping[str, str]) -> JavaObject:
        """Return an ``HdfsConfiguration`` with small blocks on loopback, and these settings."""
        configuration = self.hadoop.hdfs.HdfsConfiguration()
        for name, value in {**SMALL_AND_LOCAL, **settings}.items():
            configuration.set(name, value)
        return configuration

    @contextmanager
    def cluster(
        self, folder: Path, *, data_nodes: int, settings: Mapping[str, str] | None = None
    ) -> Iterator[JavaObject]:
        """Run a ``MiniDFSCluster`` with a new file system in ``folder/name``."""
        uri = (folder / "name").resolve().as_uri()
        builder = self.hadoop.hdfs.MiniDFSCluster.Builder(
            self.configuration({"dfs.namenode.name.dir": uri, **(settings or {})}),
            self.gateway.jvm.java.io.File(str(folder / "cluster")),
        )
        # What it keeps below its own directory is deleted when the JVM ends.
        cluster = builder.manageNameDfsDirs(False).numDataNodes(data_nodes).build()
        try:
            cluster.waitActive()
            yield cluster
        finally:
            cluster.shutdown()

    @contextmanager
    def name_node(
        self,
        name_dir: Path,
        *options: str,
        settings: Mapping[str, str] | None = None,
    ) -> Iterator[JavaObject]:
        """Run a NameNode without HA and DataNodes, started from a name directory.

        It stays in safe mode, and so writes nothing of its own but the edits of its segments.
        """
        uri = name_dir.resolve().as_uri()
        given = {"dfs.namenode.name.dir": uri, "dfs.namenode.safemode.threshold-pct": "2"}
        configuration = self.configuration({**given, **(settings or {})})
        configuration.set("fs.defaultFS", "hdfs://127.0.0.1:0")
        self.hadoop.metrics2.lib.DefaultMetricsSystem.setMiniClusterMode(True)
        self.hadoop.util.ExitUtil.disableSystemExit()
        self.hadoop.fs.FileSystem.enableSymlinks()  # or it refuses a log that has one
        node = self.hadoop.hdfs.server.namenode.NameNode.createNameNode(
            self.strings(*options), configuration
        )
        try:
            yield node
        finally:
            node.stop()
            node.join()

    def file_system_of(self, node: JavaObject) -> JavaObject:
        """Return a client of a started NameNode."""
        address = node.getNameNodeAddress()
        uri = self.gateway.jvm.java.net.URI.create(f"hdfs://127.0.0.1:{address.getPort()}")
        return self.hadoop.fs.FileSystem.newInstance(uri, self.configuration({}))

    def save_again(
        self, name_dir: Path, *options: str, settings: Mapping[str, str] | None = None
    ) -> None:
        """Start a NameNode from a directory, let it save what it loaded, and stop it."""
        with self.name_node(name_dir, *options, settings=settings) as node:
            client = self.file_system_of(node)
            client.setSafeMode(self.enum("fs.SafeModeAction", "ENTER"))
            client.saveNamespace()
            client.close()

    def save_namespace(self, file_system: JavaObject) -> None:
        """``dfsadmin -safemode enter; -saveNamespace; -safemode leave``."""
        action = "fs.SafeModeAction"
        file_system.setSafeMode(self.enum(action, "ENTER"))
        file_system.saveNamespace()
        file_system.setSafeMode(self.enum(action, "LEAVE"))

    def wait_until(self, holds: Callable[[], bool], what: str, *, seconds: float = 30.0) -> None:
        """Wait for a condition in the JVM."""
        wait_until(holds, what=what, deadline_seconds=seconds)

    def print_image(self, image: Path, processor: str = "XML", *options: str) -> str:
        """Return what ``hdfs oiv -p processor`` prints."""
        output = self.folder / f"{image.name}.{processor}"
        viewer = self.hadoop.hdfs.tools.offlineImageViewer.OfflineImageViewerPB
        arguments = ("-i", str(image), "-o", str(output), "-p", processor, *options)
        code = viewer.run(self.strings(*arguments))
        text = output.read_bytes().decode() if output.exists() else ""
        output.unlink(missing_ok=True)
        if code != 0:
            raise AssertionError(f"oiv -p {processor} {image} ended with {code}: {text[-1000:]}")
        return text

    def print_edits(self, edits: Path, output: Path, processor: str = "xml") -> None:
        """``hdfs oev -p processor``; input is XML where its name ends so."""
        tool = self.hadoop.hdfs.tools.offlineEditsViewer.OfflineEditsViewer
        code = tool().run(self.strings("-i", str(edits), "-o", str(output), "-p", processor))
        if code != 0:
            raise AssertionError(f"oev -p {processor} {edits} ended with {code}")

    def rewrite_edits(self, edits: Path, output: Path) -> None:
        """Read a log with Hadoop's classes and write it with them: its bytes must come again.

        ``hdfs oev`` itself refuses binary input and output together; its parts do not.
        """
        tool = self.hadoop.hdfs.tools.offlineEditsViewer
        visitor = tool.BinaryEditsVisitor(str(output))
        flags = tool.OfflineEditsViewer.Flags()
        code = tool.OfflineEditsViewer().go(str(edits), str(output), "xml", flags, visitor)
        if code != 0:
            raise AssertionError(f"Hadoop cannot read {edits}; its log says why")


def compile_java(source: Path, class_path: str, folder: Path) -> None:
    """Have the class files of one source; raises AssertionError with what the compiler says."""
    compiler = ["-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn"]
    done = subprocess.run(
        [find_java().executable, *compiler, "-cp", class_path, "-d", folder, source],
        capture_output=True,
        text=True,
        timeout=COMPILE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{source}: {done.stderr[-2000:]}"


@contextmanager
def running_hadoop(folder: Path, *, heap_megabytes: int = HEAP_MEGABYTES) -> Iterator[Hadoop]:
    """Start the JVM; it ends with the block, or with this process.  Its log is in ``folder``.

    Raises:
        JarsMissing: if Hadoop's server jar cannot be had.
        LocalClusterError: if there is no Java or no Hadoop client here.
    """
    java = find_java()
    jars = os.pathsep.join([class_path(*JARS, first=server_jar())])
    settings = folder / "log4j2.properties"
    settings.write_text(LOG4J2.format(level="info"))
    with (folder / "hadoop.log").open("wb") as log:
        port, token, process = launch_gateway(
            jarpath=str(next(find_jars().glob("py4j-*.jar"))),
            classpath=jars,
            javaopts=[
                *quick_start_flags(java, heap_megabytes=heap_megabytes),
                f"-Dlog4j2.configurationFile={settings}",
                f"-Dhadoop.log.dir={folder}",
                f"-Dhadoop.tmp.dir={folder}",
                f"-Dtest.build.data={folder}",
            ],
            java_path=str(java.executable),
            cwd=str(folder),
            die_on_exit=True,
            enable_auth=True,
            redirect_stderr=log,
            return_proc=True,
        )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield Hadoop(gateway, folder)
    finally:
        gateway.shutdown()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()  # with its standard input gone, the JVM ends
        try:
            process.wait(20)
        finally:
            process.kill()
