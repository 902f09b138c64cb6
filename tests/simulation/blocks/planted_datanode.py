"""Bugs of a DataNode: whom it obeys, what it deletes, what a recovery makes of replicas."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from datanode.model import Block, Replica
from datanode.namenodes.claim import Claims, NameNodeId, Said, Verdict, hear
from datanode.replicas import agreement
from datanode.replicas import replica as replicas
from datanode.replicas.agreement import Agreed, Agreement, Found, agree
from datanode.replicas.operations import Invalidate
from datanode.replicas.replica import Next, Outcome
from namenode_sim.datanode_protocol.keeper import Answer
from tests.simulation.blocks import datanode, executor, pipeline
from tests.simulation.blocks.datanode import Life
from tests.simulation.blocks.disks import NotDone
from tests.simulation.engine.mutants import Planting, all_of, replacing

LATE_SECONDS: Final = 0.2


def claim_looked_at_too_early() -> Planting:
    """Check the claim when the command comes, not when it is carried out."""
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
    """Orders stay in the queue while others are obeyed."""
    return replacing(Life, "drop_orders_of_others", lambda _life, _who: None)


def claim_forgotten() -> Planting:
    return replacing(datanode, "decode", lambda _data: Claims())


def newest_word_obeyed() -> Planting:
    def believing(claims: Claims, who: NameNodeId, said: Said, txid: int) -> tuple[Claims, Verdict]:
        if said is Said.ACTIVE:
            return Claims(txid, who), Verdict.OBEYED
        return hear(claims, who, said, txid)

    return replacing(datanode, "hear", believing)


def stepping_down_forgets() -> Planting:
    def forgetful(claims: Claims, who: NameNodeId, said: Said, txid: int) -> tuple[Claims, Verdict]:
        after, verdict = hear(claims, who, said, txid)
        return replace(after, remembered=None), verdict

    return replacing(datanode, "hear", forgetful)


def any_stamp_deleted() -> Planting:
    invalidate = replicas._invalidate

    def careless(operation: Invalidate, found: Replica | None) -> Outcome:
        block = operation.block if found is None else found.block
        return invalidate(replace(operation, block=block), found)

    return replacing(replicas, "_invalidate", careless)


def all_states_take_part() -> Planting:
    """Let a recovery take the shortest of all replicas, those of a former life included."""

    def shortest(
        block: Block, found: Sequence[Found[Any]], truncate_to: int | None, *, silent: int = 0
    ) -> Any:  # noqa: ANN401
        agreed: Agreement[Any] = agree(block, found, truncate_to, silent=silent)
        usable = [one for one in found if one.block.stamp >= block.stamp and one.length > 0]
        if not isinstance(agreed, Agreed) or truncate_to is not None:
            return agreed
        return Agreed(tuple(usable), min(one.length for one in usable))

    return replacing(executor, "agree", shortest)


def old_stamps_take_part() -> Planting:
    def lenient(
        block: Block, found: Sequence[Found[Any]], truncate_to: int | None, *, silent: int = 0
    ) -> Any:  # noqa: ANN401
        raised = [replace(one, block=replace(one.block, stamp=block.stamp)) for one in found]
        agreed: Agreement[Any] = agree(block, raised, truncate_to, silent=silent)
        if not isinstance(agreed, Agreed):
            return agreed
        taken = {id(one.node) for one in agreed.replicas}
        return Agreed(tuple(one for one in found if id(one.node) in taken), agreed.length)

    begin = replicas._begin_recovery

    def begins(operation: Any, found: Replica) -> Outcome:  # noqa: ANN401
        return begin(replace(operation, block=found.block), found)

    return all_of(
        replacing(executor, "agree", lenient), replacing(replicas, "_begin_recovery", begins)
    )


def recovery_ends_any() -> Planting:
    end = replicas._end_recovery

    def ends(operation: Any, found: Any) -> Outcome:  # noqa: ANN401
        running = getattr(found, "recovery_id", None)
        if running is None:
            return end(operation, found)
        outcome: Outcome = end(replace(operation, recovery_id=running), found)
        if isinstance(outcome, Next) and outcome.replica is not None:
            stamped = replace(outcome.replica.block, stamp=operation.recovery_id)
            return Next(replace(outcome.replica, block=stamped))
        return outcome

    return replacing(replicas, "_end_recovery", ends)


def longest_taken() -> Planting:
    return replacing(agreement, "_common", max)


def acked_before_written() -> Planting:
    async def hasty(life: Life, block: Block, start: int, payload: bytes) -> None:
        life.spawn(_late(write(life, block, start, payload)))

    write = pipeline.write_packet
    return replacing(pipeline, "write_packet", hasty)


def acked_before_final() -> Planting:
    async def hasty(life: Life, block: Block, length: int) -> None:
        life.spawn(_late(finalize(life, block, length)))

    finalize = pipeline.finalize
    return replacing(pipeline, "finalize", hasty)


async def _late(work: Coroutine[Any, Any, None]) -> None:
    await asyncio.sleep(LATE_SECONDS)
    with suppress(NotDone):
        await work


def errors_acknowledged() -> Planting:
    async def deaf(*arguments: Any) -> None:  # noqa: ANN401
        with suppress(pipeline.BadLink):
            await onward(*arguments)

    onward = pipeline.onward
    return replacing(pipeline, "onward", deaf)
