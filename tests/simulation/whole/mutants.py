"""Planted bugs, each in the part that must prevent it: what clients hear shows them."""

from collections.abc import Callable
from typing import Any, Final

from namenode_sim.client_protocol.open_files import block_writes
from namenode_sim.client_protocol.open_files.open_files import close_edit
from namenode_sim.term.edit_log import EditLog
from tests.campaigns.soak.faults.planted import BUGS
from tests.simulation.blocks import planted_datanode, planted_namenode
from tests.simulation.engine.mutants import Planted, replacing
from tests.simulation.journal import planted_protocol, planted_storage

OF_THE_FAULTS: Final = (
    "a namenode answers before the quorum",
    "a namenode counts one write as a quorum",
    "a namenode reads without a lease",
    "a zkfc fences nobody, and a namenode reads without a lease",
    "a journalnode forgets its promise, and does not notice",
)
"""Real faults find them as well: ./run soak faults --mutants."""

bug: Final = Planted(200)
for _name in OF_THE_FAULTS:
    bug.add(_name, BUGS[_name].planting)
bug.add("a journalnode answers before it has flushed", planted_storage.no_sync_before_ack())
bug.add("a new writer recovers nothing", planted_protocol.recovery_skipped())
bug.add("an error farther down is an acknowledgement", planted_datanode.errors_acknowledged())
bug.add("a storage's list of blocks is out of order", planted_namenode.list_out_of_order())
bug.add(
    "the length of a last block is not logged",
    replacing(
        block_writes,
        "close_edit",
        lambda file, path, now_ms, _blocks: close_edit(file, path, now_ms),
    ),
)


@bug.replacing("an answer is given though the log has failed", EditLog, "when_durable")
def answers_though_the_log_failed(
    really: Callable[..., None],
    self: EditLog,
    txid: Any,  # noqa: ANN401
    done: Callable[[], None],
    _failed: object,
) -> None:
    really(self, txid, done, lambda _why: done())
