"""Starts and stops the Spark that the merge runs on: small, quiet, and inside one folder."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from ha.daemon.java import JavaMissing, find_java
from ha.record import dataclass, field
from spark.engine.code_archive import pack_code, root_of_code
from spark.engine.model import SparkUnavailable
from spark.engine.spark import SparkEngine

ATTEMPTS: Final = 4
"""How often a task is tried on a local master, which by itself would try once."""

_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*(\d+))?\])?")
_LOG4J: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n
"""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""What spark-submit leaves in the environment of a Python program."""
_SECONDS_TO_LEAVE: Final = 20.0
_LOOK_SECONDS: Final = 0.1
_TELLING: Final = ("Exception", "Error", "spark: ERROR")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How Spark is started.

    Attributes:
        master: as spark-submit has it: ``local[2]``, ``spark://host:port``, ``yarn`` ...
        scratch: a folder for everything that Spark writes; on the driver's disk.
        heap_megabytes: of the driver's JVM, which only passes results on; on a local master it is
            the executor, too.
        properties: more of Spark's properties; they win.
    """

    master: str
    scratch: Path
    heap_megabytes: int = 768
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Started:
    """A running engine, and the seconds that its start took."""

    engine: SparkEngine
    seconds: float


@contextmanager
def spark_started(settings: SparkSettings) -> Iterator[Started]:
    """Spark for the time of a ``with``; its JVM goes, too.

    Raises:
        SparkUnavailable: if there is no Java, the master does not answer, or a property is wrong.
        OSError: if ``scratch`` cannot be written.
    """
    began = time.monotonic()
    settings.scratch.mkdir(parents=True, exist_ok=True)
    words = settings.scratch / "spark.log"
    with tempfile.TemporaryDirectory(prefix="nnha-") as sockets, words.open("ab") as log_file:
        gateway = context = None
        try:
            if _SUBMITTED in os.environ:
                gateway = launch_gateway()
                conf = _as_submitted(SparkConf(_jvm=gateway.jvm), settings, Path(sockets))
            else:
                local = _is_local(settings.master)
                _environment(local=local)
                conf = _configuration(settings, Path(sockets), local=local)
                gateway = _launch(conf, log_file, settings.scratch)
            context = SparkContext(gateway=gateway, conf=conf)
            if not _is_local(context.master):
                # Waits for the master; Spark gives up after a minute.
                context.addPyFile(str(pack_code(settings.scratch / "nnha-code.zip")))
        except (Py4JError, PySparkException, OSError, ValueError) as problem:
            _stop(context, gateway)
            raise SparkUnavailable(
                f"Spark did not start on {settings.master}: {_choose_line(words, problem)}. Check "
                "--master and --conf, or use --engine local"
            ) from problem
        except BaseException:  # Ctrl-C
            _stop(context, gateway)
            if gateway is None:
                _end_unannounced(settings.scratch)
            raise
        try:
            yield Started(SparkEngine(context), time.monotonic() - began)
        finally:
            _stop(context, gateway)


def _launch(conf: SparkConf, log_file: BinaryIO, scratch: Path) -> Any:  # noqa: ANN401
    """Return a gateway to a new JVM, launched by another thread, which Ctrl-C does not reach.

    PySpark forks, and Python forgets an exception that comes to a hook of a fork
    (``os.register_at_fork``; logging has one): Ctrl-C of that moment would be lost.
    """
    with ThreadPoolExecutor(1) as launcher:
        launch = launcher.submit(launch_gateway, conf, {"stderr": log_file, "stdout": log_file})
        try:
            return launch.result()
        finally:
            while not launch.done():  # called off, maybe before there is a JVM
                _end_unannounced(scratch)
                wait([launch], _LOOK_SECONDS)


def _stop(context: SparkContext | None, gateway: Any) -> None:  # noqa: ANN401 - not typed
    if context is not None:
        with suppress(Py4JError, OSError):  # its JVM died before: nothing is left to stop
            context.stop()
    _end(gateway)


def _end(gateway: Any) -> None:  # noqa: ANN401 - py4j is not typed
    """End the JVM, which PySpark would keep for as long as this process lives."""
    SparkContext._gateway = None
    SparkContext._jvm = None
    # A context whose JVM died cannot stop, and would be in the way of the next one for good.
    SparkContext._active_spark_context = None
    if gateway is None:
        return
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    process: subprocess.Popen[bytes] | None = gateway.proc
    if process is None:
        return  # spark-submit started it, and will end it
    if process.stdin is not None:
        process.stdin.close()  # the gateway's sign to leave
    try:
        process.wait(_SECONDS_TO_LEAVE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_unannounced(scratch: Path) -> None:
    """End the JVM of a start that was called off, which PySpark has not reported to us yet.

    It would stay for good: PySpark takes away the folder where it wants to write its port, and its
    main thread fails while another, that waits for connections, lives on.
    """
    ours = str(scratch).encode()  # stands among its properties
    for children in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for child in children.read_text().split():
                if ours in Path("/proc", child, "cmdline").read_bytes():
                    os.kill(int(child), signal.SIGKILL)


def _environment(*, local: bool) -> None:
    """Set what Spark's launcher reads from the environment, not from its configuration."""
    try:
        os.environ["JAVA_HOME"] = str(find_java().home)
    except JavaMissing as problem:
        raise SparkUnavailable(str(problem)) from problem
    # The workers must run what the driver runs; a cluster's own Python is said by --conf.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _configuration(settings: SparkSettings, sockets: Path, *, local: bool) -> SparkConf:
    log4j = settings.scratch / "log4j2.properties"
    log4j.write_text(_LOG4J)
    java = (
        f"-Dlog4j2.configurationFile={log4j.absolute().as_uri()} "
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    )
    found = {
        "spark.driver.memory": f"{settings.heap_megabytes}m",
        "spark.driver.extraJavaOptions": java,
        **_ours(settings, sockets, local=local),
        **settings.properties,
    }
    return SparkConf().setMaster(_with_attempts(settings.master)).setAll(list(found.items()))


def _as_submitted(conf: SparkConf, settings: SparkSettings, sockets: Path) -> SparkConf:
    """Return what spark-submit was given, with our values where it was given none.

    Its JVM runs already.
    """
    master = conf.get("spark.master", settings.master)
    for name, value in _ours(settings, sockets, local=_is_local(master)).items():
        conf.setIfMissing(name, value)
    return conf.setMaster(_with_attempts(master)).setAll(list(settings.properties.items()))


def _ours(settings: SparkSettings, sockets: Path, *, local: bool) -> dict[str, str]:
    found = {
        "spark.app.name": "nnha checkpoint",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(settings.scratch / "warehouse"),
        "spark.python.worker.reuse": "true",
    }
    if local:
        found |= {
            # Elsewhere the workers have directories of their own, and would be given ours.
            "spark.local.dir": str(settings.scratch),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Measured: a small task takes 20 ms over these, 50 ms over TCP.
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.python.unix.domain.socket.dir": str(sockets),
            # The workers import the very files that the driver runs.
            "spark.executorEnv.PYTHONPATH": str(root_of_code()),
        }
    return found


def _is_local(master: str) -> bool:
    return _LOCAL.fullmatch(master) is not None


def _with_attempts(master: str) -> str:
    """Return a local master that tries a task again, as every other master does."""
    local = _LOCAL.fullmatch(master)
    if local is None or local[2] is not None:
        return master
    return f"local[{local[1] or 1},{ATTEMPTS}]"


def _choose_line(words: Path, problem: Exception) -> str:
    """Return the line of Spark's output that explains most.

    Without one, it is PySpark's message and the last line of Spark's.
    """
    lines = [line.strip() for line in words.read_text("utf-8", "replace").splitlines()]
    telling = [line for line in lines if any(word in line for word in _TELLING)]
    if telling or isinstance(problem, Py4JError):
        # The text of a Py4JError is asked of the JVM, which may be gone.
        return telling[0] if telling else "its JVM ended"
    own = [line for line in str(problem).splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if line), "its JVM wrote nothing")
    return f"{own[0] if own else type(problem).__name__} ({last})"
