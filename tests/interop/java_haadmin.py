"""Hadoop's own ``DFSHAAdmin``, run in the JVM, with what it prints kept apart."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.interop.hadoop_server import Hadoop


@dataclass(frozen=True, slots=True)
class Printed:
    """What a haadmin ended with (as a shell sees it) and wrote."""

    code: int
    out: str
    err: str


def run_java(
    hadoop: Hadoop, site: Path, settings: Mapping[str, str], words: list[str], typed: str = ""
) -> Printed:
    """Run one command line, ``typed`` being what stands on its standard input."""
    jvm = hadoop.gateway.jvm
    configuration = hadoop.hadoop.hdfs.HdfsConfiguration()
    configuration.addResource(hadoop.path(str(site)))
    for name, value in settings.items():
        configuration.set(name, value)
    out, err = jvm.java.io.ByteArrayOutputStream(), jvm.java.io.ByteArrayOutputStream()
    kept = jvm.System.out, jvm.System.err, getattr(jvm.System, "in")
    jvm.System.setOut(jvm.java.io.PrintStream(out, True))
    jvm.System.setErr(jvm.java.io.PrintStream(err, True))
    jvm.System.setIn(jvm.java.io.ByteArrayInputStream(typed.encode()))
    try:
        tool = hadoop.hadoop.hdfs.tools.DFSHAAdmin()
        tool.setConf(configuration)
        code = tool.run(hadoop.strings(*words))
    finally:
        jvm.System.setOut(kept[0])
        jvm.System.setErr(kept[1])
        jvm.System.setIn(kept[2])
    return Printed(code & 255, out.toString(), err.toString())
