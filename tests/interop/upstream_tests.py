"""Hadoop's own JUnit tests, run against nnha's JournalNodes, or against a whole cluster.

The stand-ins for ``MiniJournalCluster`` and ``MiniDFSCluster`` and the runner of the former lie
with the test data; Maven fetches Hadoop's test jars once, where NNHA_INTEROP=1 asks for that.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from deploy.local.cluster.java import find_java
from tests import ROOT, TESTDATA
from tests.interop import maven

TOOLS: Final = TESTDATA.parent / "tools" / "upstream" / "journal"
CLIENT_TOOLS: Final = TOOLS.with_name("client")
_NAME: Final = "upstream-journal"
_TEST_JAR: Final = "hadoop-hdfs-*-tests.jar"
_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>nnha</groupId><artifactId>{artifact}</artifactId><version>1</version>
<dependencies><dependency>
<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
</dependency></dependencies></project>
"""
_ASSERTJ: Final = _POM.format(group="org.assertj", artifact="assertj-core", version="3.12.2")
"""As Hadoop names it in its pom; the journal's tests bring a newer one, which lacks a class."""
_KDC: Final = "upstream-kdc"
_KDC_JAR: Final = "hadoop-minikdc-*.jar"
_KDC_POM: Final = _POM.format(group="org.apache.hadoop", artifact="hadoop-minikdc", version="3.5.0")
_NODES: Final = "org/apache/hadoop/hdfs/qjournal"
_SECURED: Final = {
    'write(new File(confDir, "hdfs-site.xml"), site);': (
        "SecureNodes.configure(b.conf, site, confDir);\n    "
        'write(new File(confDir, "hdfs-site.xml"), site);'
    ),
    '"dfs.journalnode.http-address=127.0.0.1:" + http,': (
        'SecureNodes.pages(b.conf) + "=127.0.0.1:" + http,'
    ),
    "process = b.start();": "process = SecureNodes.inRealm(b).start();",
    # The port of pages is open before that of RPC, for which it has waited.
    'new URI("http://127.0.0.1:" + http + "/status").toURL().openStream()': (
        'new Socket("127.0.0.1", http).getInputStream()'
    ),
    "in.readAllBytes();": "",
}
"""What of the stand-in for ``MiniJournalCluster`` is another for nodes with Kerberos and HTTPS."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What ran, as ``Class.method``, and which of these did not pass, with the reason.

    One that ran with several parameters is there several times.  ``aborted`` gave up themselves.
    """

    ran: tuple[str, ...]
    failed: dict[str, str]
    aborted: frozenset[str]


def lacking() -> str:
    """Return why the tests cannot run here; empty where they can."""
    if not (TOOLS / "run.sh").is_file():
        return f"{TOOLS} is not there (NNHA_TESTDATA names the folder next to it)"
    return _lacking(_NAME, _TEST_JAR)


def lacking_kdc() -> str:
    """Return why there is no KDC of Hadoop's for its tests; empty where there is one."""
    return _lacking(_KDC, _KDC_JAR)


def _lacking(name: str, jar: str) -> str:
    if any(maven.libraries(name).glob(jar)):
        return ""
    if os.environ.get("NNHA_INTEROP") != "1" or shutil.which("mvn") is None:
        return f"no {jar} in {maven.libraries(name)} (NNHA_INTEROP=1 lets Maven fetch it)"
    return ""


def run(
    folder: Path,
    selectors: Sequence[str],
    *,
    seconds: float,
    test_seconds: int,
    secure: str | None = None,
) -> Outcome:
    """Run the selected tests in one JVM; raises TimeoutExpired after ``seconds``.

    ``secure``: the name of their class, which has Kerberos and HTTPS.
    """
    tools, libraries = folder / "tools", _fetched()
    shutil.copytree(TOOLS, tools)
    if secure is not None:
        libraries = _secured(tools, secure)
    environ = {
        **os.environ, "LIB": str(libraries), "NNHA": str(ROOT),
        "UPSTREAM_WORK": str(folder), "TEST_LIMIT": str(test_seconds),
        "JOPT": f"-Dnnha.python={sys.executable}",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'deploy' / 'python'}",
    }  # fmt: skip
    command = ["bash", str(tools / "run.sh"), "nnha", str(folder / "out"), *selectors]
    with (folder / "console.txt").open("wb") as out:
        subprocess.run(command, env=environ, stdout=out, stderr=out, timeout=seconds, check=False)
    return _outcome(folder / "out" / "reports")


def _secured(tools: Path, name: str) -> Path:
    """Change the stand-in for nodes with Kerberos and HTTPS; return the folder of jars.

    The test writes files of Hadoop's next to its own class, which is therefore taken out of the
    jar, and its stores are JKS: ``SecureNodes`` has them as PKCS#12 for the nodes.
    """
    nodes, jars = tools / "src" / _NODES, tools / "jars"
    text = (nodes / "MiniJournalCluster.java").read_text()
    for before, after in _SECURED.items():
        assert text.count(before) == 1, f"the stand-in has another {before!r}"
        text = text.replace(before, after)
    (nodes / "MiniJournalCluster.java").write_text(text)
    shutil.copy(Path(__file__).parent / "java" / _NODES / "SecureNodes.java", nodes)
    (tests,) = _fetched().glob(_TEST_JAR)
    with zipfile.ZipFile(tests) as packed:
        packed.extract(f"{name.replace('.', '/')}.class", tools / "classes")
    jars.mkdir()
    kdc = maven.fetched(_KDC, _KDC_POM, _KDC_JAR)
    for jar in {one.name: one for one in (*kdc.glob("*.jar"), *_fetched().glob("*.jar"))}.values():
        (jars / jar.name).symlink_to(jar)
    return jars


def run_client(folder: Path, conf: Path, classes: Sequence[str], *, seconds: float) -> Outcome:
    """Run whole classes in one JVM on the running cluster that a configuration directory names.

    The stand-in connects where Hadoop's ``MiniDFSCluster`` would start a cluster, and empties it.
    Raises CalledProcessError if the stand-in does not compile, TimeoutExpired after ``seconds``.
    """
    command = [
        *_java(folder, conf, "hdfs://ns1"),
        "org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner",
        "--disable-ansi-colors", "--details=tree", f"--reports-dir={folder / 'reports'}",
        *(f"--select-class={one}" for one in classes),
    ]  # fmt: skip
    with (folder / "console.txt").open("wb") as out:
        subprocess.run(command, cwd=folder, stdout=out, stderr=out, timeout=seconds, check=False)
    return _outcome(folder / "reports")


def run_list(folder: Path, conf: Path, uri: str, name: str, *, seconds: float) -> dict[int, bool]:
    """Run a list of command lines on a running cluster; return which of its cases passed.

    ``uri`` is of the active itself: the cases compare it.  Raises as ``run_client``.
    """
    made = folder / "list.jsonl"
    shutil.copytree(TESTDATA / "upstream-cli", folder / "cases")  # some are written to
    command = [*_java(folder, conf, uri, "CliRun.java"), "org.apache.hadoop.cli.CliRun"]
    with (folder / "console.txt").open("wb") as out:
        subprocess.run(
            [*command, str(made), name],
            cwd=folder, stdout=out, stderr=out, timeout=seconds, check=False,
        )  # fmt: skip
    lines = made.read_text().splitlines() if made.exists() else []
    return {case["n"]: case["pass"] for case in map(json.loads, lines)}


def _java(folder: Path, conf: Path, uri: str, *more_sources: str) -> list[str]:
    """Compile the stand-in; return the command line of a JVM that has it, up to the main class."""
    tools, java = CLIENT_TOOLS / "runner", str(find_java().executable)
    named = maven.fetched("upstream-assertj", _ASSERTJ, "assertj-core-*.jar")
    found = (*named.glob("assertj-core-*.jar"), *sorted(_fetched().glob("*.jar")))
    jars = os.pathsep.join(map(str, found))
    made = folder / "MiniDFSCluster.java"
    subprocess.run([sys.executable, tools / "make_shim.py", jars, made], check=True)
    sources = [made, *(tools / "src" / name for name in ("Shim.java", *more_sources))]
    subprocess.run(
        [java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-cp", jars,
         "-d", folder / "shim", *sources],
        check=True,
    )  # fmt: skip
    opened = [f"--add-opens=java.base/java.{part}=ALL-UNNAMED" for part in ("lang", "net", "util")]
    return [
        java, "-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *opened,
        f"-Dshim.uri={uri}", f"-Dshim.conf={conf}", f"-Dtest.build.data={folder / 'data'}",
        f"-Dtest.cache.data={folder / 'cases'}",
        f"-Dlog.file={folder / 'log'}", f"-Dhadoop.log.dir={folder}",
        "-cp", os.pathsep.join([str(folder / "shim"), str(CLIENT_TOOLS / "cp"), jars]),
    ]  # fmt: skip


def _outcome(reports: Path) -> Outcome:
    """Return what JUnit's reports in a folder say."""
    ran, failed, aborted = list[str](), dict[str, str](), set[str]()
    for report in reports.glob("TEST-*.xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name', '')}"
            name = name.removesuffix("()")
            ran.append(name)
            if case.find("skipped") is not None:
                aborted.add(name)
            for kind in ("failure", "error"):
                if (why := case.find(kind)) is not None:
                    failed[name] = why.get("message") or kind
    return Outcome(tuple(ran), failed, frozenset(aborted))


def _fetched() -> Path:
    return maven.fetched(_NAME, (TOOLS / "pom.xml").read_text(), _TEST_JAR)
