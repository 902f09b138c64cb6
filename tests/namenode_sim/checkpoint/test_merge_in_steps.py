"""Whatever the edits are: replayed at once, or with checkpoints in between, the result is one."""

import asyncio
import io
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from ha.rpc.errors import RemoteFault
from journal.model import TxId
from namenode_sim.checkpoint.merge import merge
from namenode_sim.edits.ops import EndLogSegment, Op, StartLogSegment
from namenode_sim.image.reader import load_image, read_namespace
from namenode_sim.image.writer import save_image
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, serve
from tests.namenode_sim.client_protocol.test_random import CALLS, users
from tests.namenode_sim.image.image_world import EDITS, saved
from tests.namenode_sim.namespace.dump import differences
from tests.worlds.files import info, write_segment

Steps = list[tuple[tuple[str, Fields], str]]


def logged(steps: Steps) -> list[Op]:
    """Return the edits that these calls leave in the log, behind some of every other kind."""

    async def run() -> list[Op]:
        served = serve()
        for op in EDITS[:-1]:
            served.log_and_apply(op)
        await served.call("setPermission", src="/", permission={"perm": 0o777})
        for (method, fields), user in steps:
            try:
                await served.call(method, user=user, **fields)
            except RemoteFault:
                continue
        return served.log.ops()

    return asyncio.run(run())


def replay(namespace: Namespace, ops: list[Op]) -> Namespace:
    for op in ops:
        namespace.apply(TxId(namespace.last_applied + 1), op)
    return namespace


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CALLS, users), max_size=30), st.data())
def test_a_checkpoint_in_the_middle_changes_nothing(steps: Steps, data: st.DataObject) -> None:
    ops = logged(steps)
    cut = data.draw(st.integers(0, len(ops)), label="checkpoint behind transaction")
    whole = replay(Namespace.empty("hdfs"), ops)
    first = replay(Namespace.empty("hdfs"), ops[:cut])
    assert differences(whole, replay(read_namespace(io.BytesIO(saved(first))), ops[cut:])) == []


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(CALLS, users), max_size=20), st.data())
def test_one_merge_gives_what_many_give(steps: Steps, data: st.DataObject) -> None:
    ops = logged(steps)
    cuts = data.draw(st.lists(st.integers(1, len(ops)), max_size=3), label="segments end behind")
    with TemporaryDirectory() as name:
        folder = Path(name)
        image = folder / f"fsimage_{0:019d}"
        save_image(Namespace.empty("hdfs"), image, info())
        bounds = sorted({0, *cuts, len(ops)})
        step_by_step = image
        for start, end in pairwise(bounds):
            write_segment(folder, _moved(start, bounds), _segment(ops[start:end]))
            step_by_step = merge(step_by_step, folder, folder / "steps").image
        at_once = merge(image, folder, folder / "once").image
        assert at_once.name == step_by_step.name
        assert differences(load_image(at_once), load_image(step_by_step)) == []


def _segment(ops: list[Op]) -> list[Op]:
    return [StartLogSegment(), *ops, EndLogSegment()]


def _moved(start: int, bounds: list[int]) -> int:
    """Return where a segment begins when each one before it has two marks of its own."""
    return start + 1 + 2 * bounds.index(start)
