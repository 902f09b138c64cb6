"""Where Hadoop's server jar cannot be had, the reason says how to get it."""

from pathlib import Path

import pytest

from tests.interop.hadoop_jars import JarsMissing, hadoop_version, server_jar


def test_a_cached_jar_is_taken(tmp_path: Path) -> None:
    jar = tmp_path / f"hadoop-client-minicluster-{hadoop_version()}.jar"
    jar.write_bytes(b"")
    assert server_jar({"NNHA_INTEROP_JARS": str(tmp_path)}) == jar


def test_nothing_is_fetched_without_being_asked(tmp_path: Path) -> None:
    with pytest.raises(JarsMissing, match="NNHA_INTEROP=1"):
        server_jar({"XDG_CACHE_HOME": str(tmp_path), "PATH": ""})
    assert list(tmp_path.iterdir()) == []


def test_without_maven_the_reason_says_so(tmp_path: Path) -> None:
    given = {"NNHA_INTEROP_JARS": str(tmp_path), "NNHA_INTEROP": "1", "PATH": ""}
    with pytest.raises(JarsMissing, match="there is no mvn"):
        server_jar(given)


def test_a_failed_fetch_leaves_no_jar(tmp_path: Path) -> None:
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    maven.write_text("#!/bin/sh\necho no network; exit 1\n")
    maven.chmod(0o755)
    given = {"NNHA_INTEROP_JARS": str(tmp_path / "jars"), "NNHA_INTEROP": "1"}
    with pytest.raises(JarsMissing, match="no network"):
        server_jar({**given, "PATH": f"{maven.parent}:/bin:/usr/bin"})
    assert list((tmp_path / "jars").iterdir()) == []
