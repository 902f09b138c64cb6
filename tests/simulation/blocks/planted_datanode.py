"""Bugs of a DataNode: whom it obeys, what it deletes, what a recovery makes of replicas."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from datanode.model import Replica
from datanode.namenodes.claim import ClaimEffect, Claims, NameNodeId, Said, hear
from datanode.namenodes.executor import Executor
from datanode.replicas import agreement
from datanode.replicas import replica as replicas
from datanode.replicas.agreement import Agreed, Agreement, Found, agree
from datanode.replicas.operations import Invalidate
from datanode.replicas.replica import Next, Outcome
from hadoop.blocks import Block
from namenode_sim.datanode_protocol.keeper import Answer
from tests.simulation.blocks import datanode, executor, pipeline
from tests.simulation.blocks.datanode import Life
from tests.simulation.blocks.disks import NotDone
from tests.simulation.blocks.planted_namenode import lease_not_asked
from tests.simulation.engine.mutants import Planted, Planting, all_of, replacing

_REPLICAS: Final = "tests/datanode/test_replica.py::test_stamps_and_lengths"
bug: Final = Planted(2_000)

LATE_SECONDS: Final = 0.2


@bug("the claim is looked at too early")
def claim_looked_at_too_early() -> Planting:
    take = Life.hear

    def hear_and_drop(self: Life, who: str, answer: Answer) -> None:
        take(self, who, answer)
        if self.claims.obeyed != who and answer.commands:
            for _ in answer.commands:
                self.commands.pop()

    return all_of(
        replacing(Life, "hear", hear_and_drop),
        replacing(executor, "may_command", lambda _life, _who: True),
        earlier_terms_count(),
    )


def earlier_terms_count() -> Planting:
    return replacing(Life, "drop_orders_of_others", lambda _life, _who: None)


async def _takes_none(_self: executor.Executor) -> None:
    """Leave what waits."""


bug.add(
    "an order of an earlier term is carried out",
    all_of(earlier_terms_count(), replacing(Executor, "obey", lambda *_: None)),
    killer="tests/datanode/test_executor.py::test_an_order_counts_in_its_own_term_only",
    why="one world of 5,000 showed it: a DataNode must obey two in turn before it acts",
    beside=replacing(executor.Executor, "take_before_report", _takes_none),
)
bug.add(
    "a claim is forgotten over a restart",
    replacing(datanode, "decode", lambda _data: Claims()),
    beside=lease_not_asked(),
)


@bug.replacing("the newest word is obeyed", datanode, "hear", beside=lease_not_asked())
def newest_word_obeyed(
    claims: Claims, who: NameNodeId, said: Said, txid: int
) -> tuple[Claims, ClaimEffect]:
    if said is Said.ACTIVE:
        return Claims(txid, who), ClaimEffect.OBEYED
    return hear(claims, who, said, txid)


@bug.replacing("stepping down forgets who was obeyed", datanode, "hear")
def stepping_down_forgets(
    claims: Claims, who: NameNodeId, said: Said, txid: int
) -> tuple[Claims, ClaimEffect]:
    after, verdict = hear(claims, who, said, txid)
    return replace(after, remembered=None), verdict


@bug.replacing("a replica is deleted whatever its stamp", replicas, "_invalidate")
def any_stamp_deleted(really: Any, operation: Invalidate, found: Replica | None) -> Any:
    block = operation.block if found is None else found.block
    return really(replace(operation, block=block), found)


@bug.replacing("replicas of all states take part", executor, "agree")
def all_states_take_part(
    block: Block, found: Sequence[Found[Any]], truncate_to: int | None, *, silent: int = 0
) -> Any:
    agreed: Agreement[Any] = agree(block, found, truncate_to, silent=silent)
    usable = [one for one in found if one.block.stamp >= block.stamp and one.length > 0]
    if not isinstance(agreed, Agreed) or truncate_to is not None:
        return agreed
    return Agreed(tuple(usable), min(one.length for one in usable))


@bug.killed_by(
    _REPLICAS + "[recovery: the replica is older]",
    why="a NameNode sends only to DataNodes whose replica has the block's stamp",
)
@bug("replicas of old stamps take part")
def old_stamps_take_part() -> Planting:
    def lenient(
        block: Block, found: Sequence[Found[Any]], truncate_to: int | None, *, silent: int = 0
    ) -> Any:
        raised = [replace(one, block=replace(one.block, stamp=block.stamp)) for one in found]
        agreed: Agreement[Any] = agree(block, raised, truncate_to, silent=silent)
        if not isinstance(agreed, Agreed):
            return agreed
        taken = {id(one.node) for one in agreed.replicas}
        return Agreed(tuple(one for one in found if id(one.node) in taken), agreed.length)

    begin = replicas._begin_recovery

    def begins(operation: Any, found: Replica) -> Outcome:
        return begin(replace(operation, block=found.block), found)

    return all_of(
        replacing(executor, "agree", lenient), replacing(replicas, "_begin_recovery", begins)
    )


@bug.killed_by(
    _REPLICAS + "[end: another recovery]",
    why="the NameNode does not take the result, and the next recovery puts all right",
)
@bug.replacing("an end of any recovery counts", replicas, "_end_recovery")
def recovery_ends_any(really: Any, operation: Any, found: Any) -> Any:
    running = getattr(found, "recovery_id", None)
    if running is None:
        return really(operation, found)
    outcome: Outcome = really(replace(operation, recovery_id=running), found)
    if isinstance(outcome, Next) and outcome.replica is not None:
        stamped = replace(outcome.replica.block, stamp=operation.recovery_id)
        return Next(replace(outcome.replica, block=stamped))
    return outcome


@bug.killed_by(
    "tests/datanode/test_agreement.py::test_b25_agreements[the shortest of the open ones]",
    why="what was not acknowledged was written all the same: its bytes are the right ones",
)
@bug("a recovery takes the longest replica")
def longest_taken() -> Planting:
    return replacing(agreement, "_common", max)


@bug.replacing("a packet is acknowledged before it is written", pipeline, "write_packet")
async def acked_before_written(
    really: Any, life: Life, block: Block, start: int, payload: bytes
) -> None:
    life.spawn(_late(really(life, block, start, payload)))


@bug.replacing("a block's end is acknowledged before it is final", pipeline, "finalize")
async def acked_before_final(really: Any, life: Life, block: Block, length: int) -> None:
    life.spawn(_late(really(life, block, length)))


async def _late(work: Coroutine[Any, Any, None]) -> None:
    await asyncio.sleep(LATE_SECONDS)
    with suppress(NotDone):
        await work


@bug("an error farther down is an acknowledgement")
def errors_acknowledged() -> Planting:
    async def deaf(*arguments: Any) -> None:
        with suppress(pipeline.BadLink):
            await onward(*arguments)

    onward = pipeline.onward
    return replacing(pipeline, "onward", deaf)
