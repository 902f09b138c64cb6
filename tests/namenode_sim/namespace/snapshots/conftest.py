"""One JVM with Hadoop's own NameNode for the tests that compare with it."""

from collections.abc import Iterator

import pytest

from tests.interop.hadoop_jars import JarsMissing
from tests.interop.hadoop_server import Hadoop, running_hadoop
from tests.needs import HADOOP_SERVER


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    try:
        with running_hadoop(tmp_path_factory.mktemp("hadoop")) as server:
            yield server
    except JarsMissing as missing:
        HADOOP_SERVER.skip(str(missing))
