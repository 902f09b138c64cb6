"""Which paths Hadoop takes for valid, and ours as well."""

from itertools import product

import pytest

from namenode_sim.client_protocol.words.paths import is_valid_name
from tests.interop.hadoop_server import Hadoop

pytestmark = pytest.mark.interop

PARTS = ("", ".", "..", ".a", "a:b", "a", ".reserved", ".inodes")


def test_every_short_path_is_judged_as_by_hadoop(hadoop: Hadoop) -> None:
    util = hadoop.hadoop.hdfs.DFSUtilClient
    short = ["/".join(parts) for count in range(1, 4) for parts in product(PARTS, repeat=count)]
    paths = {path for each in short for path in (each, f"/{each}", f"/.reserved/.inodes/{each}")}
    wrong = [path for path in sorted(paths) if is_valid_name(path) is not util.isValidName(path)]
    assert wrong == []
