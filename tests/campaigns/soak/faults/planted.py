"""Bugs planted in daemons that a campaign starts, to see that it finds them.

``python -m`` this module, with a bug's name and then what nnha's own command line would be.
"""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from datanode.transfers.block_writer import BlockWriter
from ha.cli.main import main
from ha.zkfc.takeover.former_active import Proof
from ha.zkfc.takeover.takeover import Takeover
from hadoop.wire.checksums import checksums_of
from hadoop.wire.packets import Packet
from journal.storage import load
from journal.writer.heartbeats import ReadLease
from namenode_sim.namespace.retry_cache import RetryCache
from namenode_sim.term.edit_log import EditLog
from tests.campaigns.soak.faults.hosts import DATANODES, JOURNALNODES, NAMENODES, zkfc_of
from tests.simulation.engine.mutants import Planting, all_of, replacing
from tests.simulation.journal import planted_protocol, planted_storage


@dataclass(frozen=True, slots=True)
class Bug:
    """What is wrong, and in which processes."""

    planting: Planting
    processes: tuple[str, ...]


def _answers_before_the_quorum() -> Planting:
    def at_once(self: Any, txid: Any, done: Any, failed: Any) -> None:  # noqa: ANN401
        del self, txid, failed
        done()

    return replacing(EditLog, "when_durable", at_once)


def _reads_without_lease() -> Planting:
    async def always(self: ReadLease, limit_seconds: float) -> bool:
        del self, limit_seconds
        return True

    return all_of(
        replacing(ReadLease, "valid", lambda self: True),
        replacing(ReadLease, "wait_until_valid", always),
    )


def _forgets_answers() -> Planting:
    return replacing(RetryCache, "find", lambda self, rpc: None)


def _fences_nobody() -> Planting:
    async def pretend(self: Takeover, target: Any) -> tuple[str, Proof]:  # noqa: ANN401
        del self
        return f"{target} was left alone", Proof.KILLED

    return replacing(Takeover, "_fence_target", pretend)


def _forgets_promises() -> Planting:
    """Forget promises; a promise older than what was written under it is not noticed at a load."""
    return all_of(
        planted_storage.promise_forgotten(), replacing(load, "ensure_promise", lambda *_: None)
    )


def _forgets_begun_chunks() -> Planting:
    """Write bytes that go on with a chunk without those before them, and with their sum."""

    def merged(self: Any, packet: Packet, start: int) -> tuple[memoryview, memoryview]:  # noqa: ANN401
        whole = bytes(packet.header.offset - start) + bytes(packet.data)
        return memoryview(whole), memoryview(checksums_of(whole, self._files.checksum))

    return replacing(BlockWriter, "_merge", merged)


_ZKFCS: Final = tuple(map(zkfc_of, NAMENODES))
BUGS: Final[Mapping[str, Bug]] = {
    "a namenode answers before the quorum": Bug(_answers_before_the_quorum(), NAMENODES),
    "a namenode counts one write as a quorum": Bug(
        planted_protocol.one_write_is_enough(), NAMENODES
    ),
    "a namenode reads without a lease": Bug(_reads_without_lease(), NAMENODES),
    # Epochs and leases hold where no node is fenced, so that one of them must fail, too.
    "a zkfc fences nobody, and a namenode reads without a lease": Bug(
        all_of(_fences_nobody(), _reads_without_lease()), (*_ZKFCS, *NAMENODES)
    ),
    "a namenode forgets what it answered": Bug(_forgets_answers(), NAMENODES),
    "a journalnode accepts a stale epoch": Bug(
        planted_protocol.stale_epoch_accepted(), JOURNALNODES
    ),
    "a journalnode forgets its promise": Bug(planted_storage.promise_forgotten(), JOURNALNODES),
    "a journalnode forgets its promise, and does not notice": Bug(
        _forgets_promises(), JOURNALNODES
    ),
    "a datanode forgets what a chunk began with": Bug(_forgets_begun_chunks(), DATANODES),
}


def entries(name: str) -> dict[str, tuple[str, ...]]:
    """Return for ``Nnha.entry`` how the processes that have the bug are started."""
    return dict.fromkeys(BUGS[name].processes, ("tests.campaigns.soak.faults.planted", name))


def run() -> None:
    """Plant what the command line names first, and be nnha with the rest."""
    name = sys.argv.pop(1)
    with ExitStack() as stack:
        BUGS[name].planting(stack)
        main()


if __name__ == "__main__":
    run()
