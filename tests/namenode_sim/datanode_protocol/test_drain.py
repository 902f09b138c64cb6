"""Which reports of Hadoop's DataNodes confirm: those asked for after all old deletions are done."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from datanode.model import Replica
from namenode_sim.blocks.recheck_queue import DeleteHint
from namenode_sim.datanode_protocol.errors import PageNotHad
from namenode_sim.datanode_protocol.keeper import KeeperRules
from namenode_sim.datanodes.commands import Delete
from namenode_sim.datanodes.damage import Damaged
from namenode_sim.datanodes.draining import ASKED_AT_ONCE, DrainRules, undrained
from namenode_sim.datanodes.model import DatanodeId, Room
from namenode_sim.datanodes.redundancy import note_hint
from namenode_sim.edits import ops
from namenode_sim.term.role import Role
from tests.log_lines import captured
from tests.namenode_sim.datanode_protocol import scripted
from tests.namenode_sim.datanode_protocol.scripted import DataNode
from tests.namenode_sim.datanode_protocol.served import RULES, Clock, NameNode, in_memory

HADOOPS = "3.5.0"
UNCHECKED = replace(RULES, draining=DrainRules(check=False))
QUIET = RULES.draining.quiet_seconds


@dataclass(slots=True)
class Pages:
    """The pages of all DataNodes of a test, which say the same."""

    commands: int = 0
    deletions: int = 0
    heartbeats: int = 10
    trouble: str = ""
    asked: list[str] = field(default_factory=list)
    while_read: Callable[[], object] = lambda: None

    async def __call__(self, of: DatanodeId, query: str) -> bytes:
        _, _, bean = query.partition("name=")
        self.asked.append(bean)
        self.while_read()
        if self.trouble:
            raise PageNotHad(self.trouble)
        if bean == f"DataNodeActivity-*-{of.transfer_port}":
            return page(
                SumOfActorCommandQueueLength=self.commands, HeartbeatsNumOps=self.heartbeats
            )
        assert bean == f"FSDatasetState-{of.uuid}"
        return page(PendingAsyncDeletions=self.deletions)


def page(**numbers: object) -> bytes:
    return json.dumps({"beans": [{"name": "x", **numbers}]}).encode()


@dataclass(slots=True)
class Scene:
    """A NameNode that has just become active, a DataNode of Hadoop's, and its page."""

    clock: Clock
    pages: Pages
    made: NameNode
    java: DataNode

    async def look(self, seconds: float = 2.0) -> None:
        """Time passes, and the pages are read that are to be read."""
        self.clock.now += seconds
        await self.made.keeper.drain_check.look()

    async def drained(self) -> None:
        """Fail unless the page shows, after the claim, that nothing is left to do."""
        await self.look()
        self.pages.heartbeats += 1
        await self.look()
        assert self.java.node.drain.done

    async def reports(self, *replicas: Replica) -> bool:
        """Report under the next heartbeat's lease; return whether that confirms."""
        lease = self.java.heartbeat(wants_lease=True).lease
        await self.java.report(*replicas, lease=lease)
        return self.java.is_confirmed()


async def scene(*, rules: KeeperRules = RULES, version: str = HADOOPS) -> Scene:
    """Build a DataNode that reported to the standby and has not heard the new active yet."""
    clock, pages = Clock(), Pages()
    made = in_memory(clock=clock, rules=rules, read=pages)
    java = await DataNode(made, "j", ["DS-j"], version=version).joined()
    made.become_active()
    return Scene(clock, pages, made, java)


async def obeying(**more: object) -> Scene:
    """Build a scene in which the DataNode was informed of the active, and obeys."""
    found = await scene(**more)  # type: ignore[arg-type]
    found.java.heartbeat()
    found.java.heartbeat()
    return found


# ---- the order: it obeys, its commands are done, its deletions are done, it reports ----


@pytest.mark.row("B34")
async def test_b34_nobody_is_asked_before_it_obeys() -> None:
    here = await scene()
    await here.look()
    assert not here.java.heartbeat().lease
    await here.look()
    assert here.pages.asked == []
    here.java.heartbeat()
    await here.look()
    assert here.pages.asked == [f"DataNodeActivity-*-{here.java.id.transfer_port}"]


async def test_a_page_that_was_counted_before_the_claim_proves_nothing() -> None:
    """Hadoop counts anew each ten seconds only, and shows the former numbers in between."""
    here = await obeying()
    for _ in range(5):
        await here.look()
    assert not here.java.node.drain.commands_done
    here.pages.heartbeats += 1
    await here.look()
    assert here.java.node.drain.done


@pytest.mark.row("B34")
async def test_b34_deletions_are_asked_for_once_no_command_runs() -> None:
    here = await obeying()
    here.pages.commands = 1
    for _ in range(3):
        here.pages.heartbeats += 1
        await here.look()
    assert not any(bean.startswith("FSDatasetState") for bean in here.pages.asked)
    here.pages.commands, here.pages.deletions = 0, 1
    here.pages.heartbeats += 1
    await here.look()
    assert here.pages.asked[-1] == "FSDatasetState-j"
    assert not await here.reports()
    # Commands that come now are ours: only deletions are asked for.
    here.pages.commands, here.pages.deletions = 1, 0
    await here.look()
    assert here.pages.asked[-1] == "FSDatasetState-j"
    assert await here.reports()


@pytest.mark.row("B34")
async def test_b34_only_a_report_that_was_asked_for_afterwards_confirms() -> None:
    here = await obeying()
    early = here.java.heartbeat(wants_lease=True).lease
    assert early
    await here.drained()
    await here.java.report(lease=early)
    assert not here.java.is_confirmed()
    lease = here.java.heartbeat().lease
    assert lease, "nobody has asked for it"
    await here.java.report(lease=lease)
    assert here.java.is_confirmed()
    asked = len(here.pages.asked)
    await here.look()
    assert len(here.pages.asked) == asked


# ---- what is lost otherwise ----


def too_many(here: Scene) -> None:
    here.made.apply(ops.SetReplication("/f0", 1))


def hinted(here: Scene) -> None:
    too_many(here)
    note_hint(here.made.cluster, scripted.FIRST, DeleteHint("o", "j"))


def damaged(here: Scene) -> None:
    here.made.keeper.damaged([Damaged(scripted.FIRST, scripted.STAMP, "o")])
    too_many(here)


REASONS = {"excess": too_many, "hint of a balancer": hinted, "corrupt": damaged}


async def with_a_doomed_replica(
    reason: str, *, rules: KeeperRules = RULES
) -> tuple[Scene, DataNode]:
    """Let the former active order Hadoop's DataNode to delete its replica, which it lists."""
    here = await obeying(rules=rules)
    here.made.apply(*scripted.edits())
    here.pages.deletions = 1
    other = await DataNode(here.made, "o", ["DS-o"]).joined(scripted.whole())
    await here.reports(scripted.whole())
    await here.made.keeper.upkeep.look()
    assert other.is_confirmed()
    # The other storage is the fuller one, so that its replica goes first.
    storage = other.node.storages["DS-o"]
    storage.room = Room(remaining=1)
    REASONS[reason](here)
    await here.made.keeper.upkeep.look()
    return here, other


def deletes(datanode: DataNode) -> bool:
    return any(isinstance(one, Delete) for one in datanode.heartbeat().commands)


@pytest.mark.row("B34")
@pytest.mark.parametrize("reason", REASONS)
async def test_b34_no_other_replica_goes_on_the_word_of_one_that_is_doomed(reason: str) -> None:
    here, other = await with_a_doomed_replica(reason)
    await here.look()
    here.pages.heartbeats += 1
    await here.look()
    await here.reports(scripted.whole())
    await here.made.keeper.upkeep.look()
    assert not deletes(other)
    await here.java.tell(scripted.deleted())
    here.pages.deletions = 0
    await here.look()
    assert await here.reports()
    await here.made.keeper.upkeep.look()
    assert not deletes(other)
    assert here.made.holders(scripted.FIRST) == ["DS-o"]


@pytest.mark.parametrize("reason", REASONS)
async def test_by_hadoops_rule_the_last_replica_goes(reason: str) -> None:
    here, other = await with_a_doomed_replica(reason, rules=UNCHECKED)
    assert here.java.is_confirmed()
    assert deletes(other)
    assert here.pages.asked == []


# ---- pages that cannot be had ----


async def unreadable() -> Scene:
    here = await obeying()
    here.pages.trouble = "connection refused"
    with captured("datanodes.page_unreadable") as lines:
        await here.look()
        await here.look(30.0)
    assert [(line["log_level"], line["why"]) for line in lines] == [("warning", here.pages.trouble)]
    return here


@pytest.mark.row("B34")
async def test_b34_without_its_page_a_long_silence_is_needed() -> None:
    here = await unreadable()
    await here.look(QUIET - 33.0)
    assert not await here.reports()
    with captured("datanodes.") as lines:
        await here.look(1.0)
    assert [line["log_level"] for line in lines if "silence" in line["event"]] == ["warning"]
    assert await here.reports()


@pytest.mark.row("B34")
async def test_b34_a_deletion_that_we_did_not_order_ends_the_silence() -> None:
    here = await unreadable()
    await here.look(QUIET - 40.0)
    await here.java.tell(scripted.deleted(5))
    await here.look(QUIET - 1.0)
    assert not await here.reports()
    await here.look(1.0)
    assert await here.reports()


async def test_deletions_that_we_ordered_do_not_count() -> None:
    here = await unreadable()
    here.made.apply(*scripted.edits())
    await here.java.report(scripted.whole(), lease=here.java.heartbeat(wants_lease=True).lease)
    here.made.apply(ops.Delete("/f0", 30))
    assert deletes(here.java)
    await here.look(QUIET - 40.0)
    await here.java.tell(scripted.deleted())
    await here.look(40.0)
    assert await here.reports()


async def test_a_page_that_comes_back_is_believed_and_silence_is_not() -> None:
    here = await unreadable()
    here.pages.trouble, here.pages.commands = "", 1
    await here.look(30.0)
    await here.look(QUIET)
    assert not here.java.node.drain.done
    here.pages.commands = 0
    here.pages.heartbeats += 1
    await here.look()
    assert await here.reports()


# ---- no drain is needed, or its answer is void ----


@pytest.mark.parametrize("unneeded", [{"version": "3.5.0-nnha"}, {"rules": UNCHECKED}])
async def test_no_page_is_read_of_ours_or_where_it_is_switched_off(
    unneeded: dict[str, object],
) -> None:
    here = await scene(**unneeded)  # type: ignore[arg-type]
    assert await here.reports()
    here.java.heartbeat()
    await here.look()
    assert here.pages.asked == []
    assert undrained(here.made.cluster, here.made.keeper.rules.draining) == 0


def obeys_again(here: Scene) -> None:
    here.java.register()
    here.java.heartbeat()
    here.java.heartbeat()


CHANGES: dict[str, Callable[[Scene], object]] = {
    "the DataNode registers anew": lambda here: here.java.register(),
    "the DataNode registers anew and obeys": obeys_again,
    "the DataNode dies": lambda here: setattr(here.java.node, "alive", False),
    "the DataNode must register": lambda here: setattr(here.java.node, "must_register", True),
    "the role changes": lambda here: here.made.become(Role.CLOSING, Role.STANDBY),
    "it becomes the active again": lambda here: here.made.become(Role.STANDBY, Role.OPENING),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_an_answer_about_the_past_is_void(change: str) -> None:
    here = await obeying()
    await here.look()
    here.pages.heartbeats += 1
    here.pages.while_read = lambda: CHANGES[change](here)
    await here.look()
    assert not here.java.node.drain.done
    assert here.pages.asked[-1].startswith("DataNodeActivity")


async def test_who_registers_anew_is_asked_again() -> None:
    here = await obeying()
    assert undrained(here.made.cluster, RULES.draining) == 1
    await here.drained()
    assert undrained(here.made.cluster, RULES.draining) == 0
    here.java.register()
    assert undrained(here.made.cluster, RULES.draining) == 1
    here.java.heartbeat()
    here.java.heartbeat()
    await here.drained()
    assert await here.reports()


async def test_so_many_pages_are_read_at_once_and_all_have_their_turn() -> None:
    here = await obeying()
    for number in range(ASKED_AT_ONCE):
        other = DataNode(
            here.made, f"n{number}", [f"DS-{number}"], port=1 + number, version=HADOOPS
        )
        other.register()
        other.heartbeat()
        other.heartbeat()
    await here.look()
    assert len(here.pages.asked) == ASKED_AT_ONCE
    await here.look(0.5)
    assert len(set(here.pages.asked)) == len(here.pages.asked) == ASKED_AT_ONCE + 1
