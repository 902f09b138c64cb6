"""What a restored file system gives out is apart from what the lost one gave out."""

from pathlib import Path

from journal.model import TxId
from namenode_sim.image.reader import load_image
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from spark.backup.restore import move_apart
from tests.spark.backup.test_folder import INFO


def test_transactions_block_ids_and_stamps_move_apart(tmp_path: Path) -> None:
    namespace = Namespace.empty("hdfs")
    namespace.last_applied, namespace.counters.last_block_id = TxId(70), 2**30 + 5
    namespace.counters.generation_stamp_v2 = 1005
    move_apart(namespace)
    save_image(namespace, tmp_path / "fsimage", INFO)
    found = load_image(tmp_path / "fsimage")
    assert found.last_applied == 2**40 + 70
    assert found.counters.last_block_id == 2**40 + 2**30 + 5
    assert found.counters.generation_stamp_v2 == 2**40 + 1005
