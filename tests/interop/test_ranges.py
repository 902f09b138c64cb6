"""Images put together from ranges: a real NameNode loads them, each codec, whole and in parts."""

from pathlib import Path

import pytest

from namenode_sim.image.files import write_digest
from namenode_sim.image.reader import load_image
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from tests.interop.hadoop_server import Hadoop
from tests.interop.known_differences import content_differences
from tests.interop.name_dirs import images
from tests.interop.test_images import CODECS, NEWEST, PARALLEL, everything
from tests.spark.merge.image_world import merged, nothing_changes, opened, summary
from tests.worlds.name_dirs import format_name_dirs

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]


@pytest.mark.parametrize("parts", [0, 3])
@pytest.mark.parametrize("codec", ["", *CODECS.values()], ids=["plain", *CODECS])
def test_hadoop_loads_what_ranges_were_put_together_to(
    hadoop: Hadoop, worked_in: Path, tmp_path: Path, codec: str, parts: int
) -> None:
    """Check it as each section is many streams behind each other then, sub-sections or not."""
    whole, name_dir = everything(worked_in), tmp_path / "name"
    old = tmp_path / "old" / f"fsimage_{whole.last_applied:019d}"
    old.parent.mkdir()
    save_image(whole, old, NEWEST, codec=codec, sub_sections=parts)
    found = opened(old, tmp_path / "work", size=400)
    assert len(found.index.inodes) > 3
    format_name_dirs([name_dir], NEWEST, Namespace.empty("hdfs"))
    out, written = merged(found, nothing_changes(found), name_dir / "current")
    write_digest(out, written.md5)
    assert any(s.name == "INODE_SUB" for s in summary(out).sections) == bool(parts)
    hadoop.save_again(name_dir, settings=PARALLEL if parts else {})
    theirs = load_image(images(name_dir)[-1])
    assert theirs.last_applied > whole.last_applied
    assert content_differences(whole, theirs) == []
