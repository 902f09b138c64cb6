"""Bugs of a DataNode: whom it obeys, what it deletes, what a recovery makes of replicas."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from namenode_sim.datanode import replica as replicas
from namenode_sim.datanode.agreement import Agreed, Agreement, Found, agree
from namenode_sim.datanode.claim import Claims, NameNodeId, Said, Verdict, hear
from namenode_sim.datanode.model import Block, Replica
from namenode_sim.datanode.operations import Invalidate
from namenode_sim.datanode.replica import Next, Outcome, decide
from namenode_sim.datanode_protocol.keeper import Answer
from tests.simulation.blocks import datanode, executor
from tests.simulation.blocks.datanode import Life
from tests.simulation.engine.mutants import Planting, all_of, replacing


def claim_looked_at_too_early() -> Planting:
    """Whose command it is counts when the command comes, not when it is carried out."""
    take = Life.hear

    def hear_and_drop(self: Life, who: str, answer: Answer) -> None:
        take(self, who, answer)
        if self.claims.obeyed != who and answer.commands:
            for _ in answer.commands:
                self.commands.pop()

    return all_of(
        replacing(Life, "hear", hear_and_drop),
        replacing(executor, "may_command", lambda _life, _who: True),
    )


def claim_forgotten() -> Planting:
    """A DataNode that starts believes the first who claims."""
    return replacing(datanode, "decode", lambda _data: Claims())


def newest_word_obeyed() -> Planting:
    """Whoever says last that it is the active is obeyed."""

    def believing(claims: Claims, who: NameNodeId, said: Said, txid: int) -> tuple[Claims, Verdict]:
        if said is Said.ACTIVE:
            return Claims(txid, who), Verdict.OBEYED
        return hear(claims, who, said, txid)

    return replacing(datanode, "hear", believing)


def stepping_down_forgets() -> Planting:
    """Who was obeyed last needs another edit to be obeyed again."""

    def forgetful(claims: Claims, who: NameNodeId, said: Said, txid: int) -> tuple[Claims, Verdict]:
        after, verdict = hear(claims, who, said, txid)
        return replace(after, remembered=None), verdict

    return replacing(datanode, "hear", forgetful)


def any_stamp_deleted() -> Planting:
    """A replica is deleted whatever its stamp."""
    return replacing(datanode, "decide", lambda _op, found: decide(Invalidate(found.block), found))


def all_states_take_part() -> Planting:
    """A recovery takes the shortest of all replicas, those of a former life included."""

    def shortest(block: Block, found: Sequence[Found[Any]], truncate_to: int | None) -> Any:  # noqa: ANN401
        agreed: Agreement[Any] = agree(block, found, truncate_to)
        usable = [one for one in found if one.block.stamp >= block.stamp and one.length > 0]
        if not isinstance(agreed, Agreed) or truncate_to is not None:
            return agreed
        return Agreed(tuple(usable), min(one.length for one in usable))

    return replacing(executor, "agree", shortest)


def old_stamps_take_part() -> Planting:
    """A recovery takes replicas that fell out of the pipeline."""

    def lenient(block: Block, found: Sequence[Found[Any]], truncate_to: int | None) -> Any:  # noqa: ANN401
        raised = [replace(one, block=replace(one.block, stamp=block.stamp)) for one in found]
        agreed: Agreement[Any] = agree(block, raised, truncate_to)
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
    """An end of a recovery counts whichever recovery it was."""
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
