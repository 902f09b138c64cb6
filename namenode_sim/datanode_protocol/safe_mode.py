"""Moves the safe mode of the start on, with the edits, the reports and the clock.

See docs/reference/blocks.md#safe-mode.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Final

import structlog

from namenode_sim.blocks.safemode import look
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.term.role import TAKING_OVER, Role

log = structlog.get_logger()

LOOK_SECONDS: Final = 1.0
AWAITING_SECONDS: Final = 0.1
"""A standby without blocks is ready as soon as it has read the journal."""


class SafeModeWatch:
    """Looks at the safe mode of one NameNode.

    ``has_caught_up``: whether all edits of the journal have been applied once.
    """

    def __init__(
        self, cluster: Cluster, has_caught_up: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._cluster = cluster
        self._has_caught_up = has_caught_up
        self._clock = clock
        self._awaits_edits = False
        self._role = Role.STANDBY

    @property
    def look_again_seconds(self) -> float:
        return AWAITING_SECONDS if self._awaits_edits else LOOK_SECONDS

    def role_changed(self, role: Role) -> None:
        """Note the role; in the midst of a takeover nothing moves."""
        self._role = role
        if role is Role.ACTIVE:
            self.look()

    def await_edits(self) -> None:
        """Begin in safe mode, and look what there is to wait for once all edits are applied."""
        self._awaits_edits = True
        self._cluster.await_edits()

    def tip(self) -> str:
        """Say what safe mode waits for; empty where it is off."""
        return self._cluster.safe_mode_tip(self._clock())

    def look(self) -> None:
        """Find out whether the safe mode of the start moves on."""
        cluster, before = self._cluster, self._cluster.safe_mode
        if cluster.safe_mode_stays:
            return
        if self._awaits_edits:
            if self._role is not Role.ACTIVE and not self._has_caught_up():
                return
            self._awaits_edits = False
            cluster.begin_safe_mode()
        else:
            taking_over = self._role in TAKING_OVER
            counts, now = cluster.counts(), self._clock()
            cluster.set_safe_mode(look(before, cluster.rules, counts, now, taking_over=taking_over))
        if cluster.safe_mode != before:
            log.info(
                "safe_mode.moved",
                startup=type(cluster.safe_mode.startup).__name__.lower(),
                on=cluster.safe_mode.is_on(),
                counts=asdict(cluster.counts()),
            )
