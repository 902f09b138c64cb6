"""Hadoop's own FsShell in a JVM that lives through all commands, driven over py4j."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, TypeAlias

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from deploy.local.cluster.java import class_path, find_jars, find_java

JavaObject: TypeAlias = Any
"""Something in the JVM; py4j finds its members at run time."""

_JARS = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "slf4j-api-*.jar")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


@dataclass(slots=True)
class HadoopShell:
    """``hadoop fs`` with one JVM start for all."""

    gateway: JavaObject

    def configuration(self, port: int) -> JavaObject:
        configuration = self.gateway.jvm.org.apache.hadoop.conf.Configuration()
        configuration.set("fs.defaultFS", f"hdfs://127.0.0.1:{port}")
        configuration.set("fs.hdfs.impl.disable.cache", "true")
        configuration.set("ipc.client.connect.max.retries", "0")
        return configuration

    def run(self, port: int, *command: str) -> Ran:
        jvm = self.gateway.jvm
        out, err = jvm.java.io.ByteArrayOutputStream(), jvm.java.io.ByteArrayOutputStream()
        shell = jvm.org.apache.hadoop.fs.FsShell(self.configuration(port))
        arguments = self.gateway.new_array(jvm.java.lang.String, len(command))
        for index, argument in enumerate(command):
            arguments[index] = argument
        before = jvm.System.out, jvm.System.err
        jvm.System.setOut(jvm.java.io.PrintStream(out, True))
        jvm.System.setErr(jvm.java.io.PrintStream(err, True))
        try:
            code: int = shell.run(arguments)
        finally:
            jvm.System.setOut(before[0])
            jvm.System.setErr(before[1])
            shell.close()
        return Ran(code, str(out.toString()), str(err.toString()))

    def file_system(self, port: int) -> JavaObject:
        configuration = self.configuration(port)
        uri = self.gateway.jvm.java.net.URI(f"hdfs://127.0.0.1:{port}")
        return self.gateway.jvm.org.apache.hadoop.fs.FileSystem.newInstance(uri, configuration)

    def path(self, path: str) -> JavaObject:
        return self.gateway.jvm.org.apache.hadoop.fs.Path(path)


@contextmanager
def hadoop_shell(conf_dir: Path, user: str) -> Iterator[HadoopShell]:
    """Start the JVM with a conf directory first on its class path (FsShell insists on one).

    Raises:
        LocalClusterError: if there is no Java or no Hadoop client here.
    """
    java = find_java()
    (conf_dir / "core-site.xml").write_text("<configuration/>")
    port, token, process = launch_gateway(
        jarpath=str(next(find_jars().glob("py4j-*.jar"))),
        classpath=class_path(*_JARS, first=conf_dir),
        javaopts=[
            "-Xmx192m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-DHADOOP_USER_NAME={user}",
        ],
        java_path=str(java.executable),
        die_on_exit=True,
        enable_auth=True,
        redirect_stderr=DEVNULL,
        redirect_stdout=DEVNULL,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield HadoopShell(gateway)
    finally:
        gateway.shutdown()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        try:
            process.wait(10)
        finally:
            process.kill()
