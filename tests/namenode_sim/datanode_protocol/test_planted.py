"""Slips that the tests of the keeper find: each is planted, and a test must fail."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from journal.model import TxId
from namenode_sim.blocks.reports import compare as _compare
from namenode_sim.blocks.safemode import Off, SafeMode
from namenode_sim.datanode_protocol import gone, intake, keeper
from namenode_sim.datanode_protocol.intake import Intake
from namenode_sim.datanode_protocol.keeper import Keeper
from namenode_sim.datanode_protocol.safe_mode import SafeModeWatch
from namenode_sim.datanode_protocol.slices import in_slices as _in_slices
from namenode_sim.datanodes import commands, draining
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.commands import orders as _orders
from namenode_sim.datanodes.errors import DatanodesError
from namenode_sim.datanodes.report_leases import Held, ReportLeases
from tests.namenode_sim.datanode_protocol import test_drain as drain
from tests.namenode_sim.datanode_protocol import test_keeper as tests
from tests.namenode_sim.datanode_protocol import test_keeper_lasting as lasting

FAILURES = (AssertionError, DatanodesError, TimeoutError, pytest.fail.Exception)


@dataclass(frozen=True, slots=True)
class Slip:
    """What is put in place of what, and the test that fails by it."""

    where: object
    name: str
    instead: object
    found_by: Callable[[], Awaitable[None]]


def _never_safe(self: Keeper, *args: Any, **more: Any) -> object:  # noqa: ANN401 - passed on
    kept = self.cluster.safe_mode
    self.cluster.safe_mode = SafeMode(Off())
    try:
        return _hear(self, *args, **more)
    finally:
        self.cluster.safe_mode = kept


def _all_durable(cluster: Cluster, node: Any, _: TxId, *rest: Any) -> object:  # noqa: ANN401
    return _orders(cluster, node, TxId(1 << 60), *rest)


def _checks_nothing(self: ReportLeases, uuid: str, lease: int, now: float) -> Held:
    return Held(lease, now, now + 1, after_claim=True)


def _claims(self: ReportLeases, uuid: str, now: float, *, after_claim: bool) -> int:
    return _give(self, uuid, now, after_claim=True)


def _any_address(cluster: Cluster, who: Any) -> object:  # noqa: ANN401
    return cluster.nodes.get(who.uuid)


def _keeps_leases(self: Keeper, *, as_active: bool) -> None:
    held = dict(self.leases._held)
    _change_role(self, as_active=as_active)
    self.leases._held.update(held)


def _moves_in_takeovers(self: SafeModeWatch) -> None:
    role, self._role = self._role, type(self._role).STANDBY
    _look(self)
    self._role = role


def _made_long_ago(blocks: Any, storage: Any, part: Any, _: float) -> object:  # noqa: ANN401
    return _compare(blocks, storage, part, float("inf"))


async def _goes_on(steps: Any, _: Callable[[], bool]) -> bool:  # noqa: ANN401
    return await _in_slices(steps, lambda: True)


_hear, _change_role = Keeper.hear, Keeper._change_role
_give, _look = ReportLeases.give, SafeModeWatch.look

SLIPS = {
    "orders in safe mode": Slip(
        Keeper, "hear", _never_safe, lambda: tests.test_b7_no_order_leaves("in safe mode")
    ),
    "orders before their edits": Slip(
        commands, "orders", _all_durable,
        lambda: tests.test_b7_no_order_leaves("before the edit is durable"),
    ),
    "a report under any lease": Slip(
        ReportLeases, "check", _checks_nothing,
        tests.test_b18_a_report_without_its_lease_is_an_error_and_changes_nothing,
    ),
    "a lease without a claim confirms": Slip(
        ReportLeases, "give", _claims,
        tests.test_a_lease_of_an_answer_without_a_claim_confirms_nothing,
    ),
    "leases outlive the role": Slip(
        Keeper, "_change_role", _keeps_leases,
        tests.test_storages_are_confirmed_by_a_report_that_was_made_in_obedience,
    ),
    "a heartbeat from anywhere": Slip(
        commands, "is_registered", _any_address,
        tests.test_b20_who_is_not_registered_is_told_to,
    ),
    "a report goes on whatever happens": Slip(
        Intake, "_same_as_now", lambda *_: lambda: True,
        tests.test_a_role_that_changes_under_a_report_ends_it,
    ),
    "a report undoes newer news": Slip(
        intake, "compare", _made_long_ago,
        tests.test_b19_news_are_known_at_once_and_no_full_report_undoes_them,
    ),
    "safe mode moves in a takeover": Slip(
        SafeModeWatch, "look", _moves_in_takeovers,
        lasting.test_b8_nothing_moves_in_the_midst_of_a_takeover,
    ),
    "a storage is emptied though it is back": Slip(
        gone, "in_slices", _goes_on,
        lasting.test_one_that_comes_back_before_it_is_emptied_keeps_what_it_reports,
    ),
    "drain ignored": Slip(
        keeper, "awaits_drain", lambda *_: False,
        lambda: drain.test_b34_no_other_replica_goes_on_the_word_of_one_that_is_doomed("excess"),
    ),
    "asked before it obeys": Slip(
        draining, "_is_asked", lambda node: node.alive,
        drain.test_b34_nobody_is_asked_before_it_obeys,
    ),
    "a page of before the claim counts": Slip(
        draining, "_all_done", lambda _, found: found.waiting == 0,
        drain.test_a_page_that_was_counted_before_the_claim_proves_nothing,
    ),
    "deletions are asked for at once": Slip(
        draining, "_all_done", lambda *_: True,
        drain.test_b34_deletions_are_asked_for_once_no_command_runs,
    ),
    "deletions of others break no silence": Slip(
        intake, "note_deletions", lambda *_: None,
        drain.test_b34_a_deletion_that_we_did_not_order_ends_the_silence,
    ),
    "silence is not needed": Slip(
        draining.DrainRules, "quiet_seconds", 0.0,
        drain.test_b34_without_its_page_a_long_silence_is_needed,
    ),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
async def test_each_slip_is_found(slip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = SLIPS[slip]
    monkeypatch.setattr(lasting, "SETTLE_SECONDS", 3.0)
    await planted.found_by()
    monkeypatch.setattr(planted.where, planted.name, planted.instead)
    with pytest.raises(FAILURES):
        await planted.found_by()


def test_the_slips_differ() -> None:
    found = {(id(one.where), one.name, id(one.instead)) for one in SLIPS.values()}
    assert len(found) == len(SLIPS)
