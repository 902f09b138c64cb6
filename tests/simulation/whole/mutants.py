"""Planted bugs, each in the part that must prevent it: what clients hear shows them."""

from collections.abc import Callable
from typing import Any, Final

from namenode_sim.client_protocol.open_files import block_writes
from namenode_sim.client_protocol.open_files.open_files import close_edit
from namenode_sim.term.edit_log import EditLog
from tests.campaigns.soak.faults.planted import BUGS
from tests.simulation.blocks import planted_datanode, planted_namenode
from tests.simulation.engine.mutants import Mutant, Planting, replacing
from tests.simulation.journal import planted_protocol, planted_storage


def _answers_though_the_log_failed() -> Planting:
    """Answer all that wait for an edit when its log ends, whatever became of the edit."""
    really = EditLog.when_durable

    def when(self: EditLog, txid: Any, done: Callable[[], None], failed: Any) -> None:  # noqa: ANN401
        del failed
        really(self, txid, done, lambda _why: done())

    return replacing(EditLog, "when_durable", when)


def _last_length_not_logged() -> Planting:
    """Let the edit that closes a file repeat what edits have said of its blocks before."""
    return replacing(
        block_writes,
        "close_edit",
        lambda file, path, now_ms, _blocks: close_edit(file, path, now_ms),
    )


def _bug(name: str, plant: Planting, seeds: int = 200) -> Mutant:
    return Mutant(name, plant, seeds)


def _of_the_faults(name: str, seeds: int = 200) -> Mutant:
    """Return a bug that real faults find as well: ./run soak faults --mutants."""
    return _bug(name, BUGS[name].planting, seeds)


MUTANTS: Final = (
    _of_the_faults("a namenode answers before the quorum"),
    _of_the_faults("a namenode counts one write as a quorum"),
    _of_the_faults("a namenode reads without a lease"),
    _of_the_faults("a zkfc fences nobody, and a namenode reads without a lease"),
    _of_the_faults("a journalnode forgets its promise, and does not notice"),
    _bug("a journalnode answers before it has flushed", planted_storage.no_sync_before_ack()),
    _bug("a new writer recovers nothing", planted_protocol.recovery_skipped()),
    _bug("the length of a last block is not logged", _last_length_not_logged()),
    _bug("an error farther down is an acknowledgement", planted_datanode.errors_acknowledged()),
    _bug("a storage's list of blocks is out of order", planted_namenode.list_out_of_order()),
    _bug("an answer is given though the log has failed", _answers_though_the_log_failed()),
)
