"""Random logs: plan, sparse replay and difference give what the replay on everything gives."""

from random import Random

import pytest

from namenode_sim.edits import ops
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.image.image_world import saved
from tests.spark.merge.memory import check_against_oracle
from tests.worlds.attribute_deeds import ADMIN_DEEDS, ATTRIBUTE_DEEDS
from tests.worlds.author import FILE_DEEDS, Author, Deed, add_again, rename, rename_old

DEEDS = (*FILE_DEEDS, *FILE_DEEDS, *ATTRIBUTE_DEEDS, *ADMIN_DEEDS)
OLD_DEEDS = (*DEEDS, add_again)
"""As logs before layout -62 have them."""
MOVING_DEEDS = (*DEEDS, *(rename, rename_old) * 8)


def create_plain(author: Author) -> None:
    path = author.new_path()
    if path is not None:
        who, acl = author.creation(path, directory=False)
        number = author.namespace.counters.last_inode_id + 1
        now = author.now
        author.write(
            ops.Add(number, path, 3, now, now, 1000, (), who, acl, (), "w1", "host", False)
        )


@pytest.mark.parametrize("deeds", [DEEDS, OLD_DEEDS, MOVING_DEEDS], ids=["new", "old", "moving"])
@pytest.mark.parametrize("layout", [-63, -65])
@pytest.mark.parametrize("seed", range(12))
def test_a_random_log_gives_what_the_whole_namespace_gives(
    seed: int, layout: int, deeds: tuple[Deed, ...]
) -> None:
    author = Author(Random(seed), Namespace.empty("hdfs"))
    if layout > -64:  # no erasure coding yet
        deeds = tuple(deed for deed in deeds if deed.__name__ not in {"create", "erasure_coding"})
        deeds += (create_plain,) * 6
    for _ in range(author.random.choice((0, 20, 60, 150))):
        author.step(deeds)
    data = saved(author.namespace, layout)
    author.log.clear()
    for _ in range(author.random.choice((1, 10, 40, 150))):
        author.step(deeds)
    check_against_oracle(data, author.log)
