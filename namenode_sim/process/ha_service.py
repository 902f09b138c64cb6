"""What a NameNode answers to ZKFCs and operators: HAServiceProtocol.

See docs/reference/rpc.md#haserviceprotocol.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import structlog

from ha.daemon.identity import machine, started_ticks
from ha.rpc.server import Call
from ha.service.errors import AccessDenied, HealthCheckFailed, ServiceFailed
from ha.service.model import ProcessIdentity, RequestSource, ServiceState, ServiceStatus
from namenode_sim.namespace.state import Secrets
from namenode_sim.process.loading import Loading
from namenode_sim.term.namenode import NameNode, TransitionRefused
from namenode_sim.term.role import Role

log = structlog.get_logger()


class NameNodeHaService:
    """Authorizes requests for a transition, and reports the NameNode's state.

    It is the same object while the image is loaded and afterwards, so that what its protocol
    remembers of locks outlives the load.
    """

    def __init__(
        self,
        stage: Loading | NameNode,
        *,
        superuser: str,
        automatic_failover: bool,
        not_active_in_safe_mode: bool = False,
        disk_trouble: Callable[[], str | None],
    ) -> None:
        self._stage = stage
        self._superuser = superuser
        self._automatic_failover = automatic_failover
        self._not_active_in_safe_mode = not_active_in_safe_mode
        self._disk_trouble = disk_trouble
        self.safe_mode_tip: Callable[[], str] = str
        pid = os.getpid()
        self._process = ProcessIdentity(pid, started_ticks(pid) or 0, machine())

    def loaded(self, namenode: NameNode, safe_mode_tip: Callable[[], str] = str) -> None:
        """Answer for this NameNode from now on: its image is loaded.

        ``safe_mode_tip`` says what safe mode waits for, and nothing where it is off.
        """
        self._stage, self.safe_mode_tip = namenode, safe_mode_tip

    def secrets_of_active(self) -> Secrets | None:
        """Return what tokens are checked with; None unless this NameNode is the active."""
        stage = self._stage
        if isinstance(stage, Loading) or stage.state.role is not Role.ACTIVE:
            return None
        return stage.namespace.secrets

    async def status(self) -> ServiceStatus:
        """Return the state as Hadoop knows it.  A takeover under way still counts as standby."""
        stage = self._stage
        if isinstance(stage, Loading):
            return ServiceStatus(
                ServiceState.INITIALIZING,
                ready_to_become_active=False,
                not_ready_reason=stage.reason(),
                process=self._process,
            )
        if stage.state.role is Role.ACTIVE:
            return ServiceStatus(
                ServiceState.ACTIVE, ready_to_become_active=True, process=self._process
            )
        reason = self.not_ready_reason()
        return ServiceStatus(
            ServiceState.STANDBY, not reason, not_ready_reason=reason, process=self._process
        )

    def not_ready_reason(self) -> str:
        """Return why this NameNode should not become active now; empty if it may."""
        stage = self._stage
        if isinstance(stage, Loading):
            return stage.reason()
        if stage.state.role is Role.CLOSING:
            return "it is just becoming standby"
        return stage.tailer.trouble or stage.lacking() or self.safe_mode_tip()

    async def monitor_health(self) -> None:
        """Return if well.

        Raises:
            HealthCheckFailed: when a local disk cannot take what the NameNode must write, or
                while the image is loaded: a controller that heard "well" would stand.  In safe
                mode, too, with dfs.ha.nn.not-become-active-in-safemode.
        """
        if isinstance(self._stage, Loading):
            raise HealthCheckFailed(self._stage.reason())
        if trouble := self._disk_trouble():
            raise HealthCheckFailed(trouble)
        if self._not_active_in_safe_mode and self.safe_mode_tip():
            raise HealthCheckFailed(
                "The NameNode is configured to report UNHEALTHY to ZKFC in Safemode."
            )

    async def transition_to_active(
        self, source: RequestSource, call: Call, *, predecessor_gone_until: float = 0.0
    ) -> None:
        """Become active; return when the first edit of the new term is durable.

        Not before the former active's read lease has run out, unless an epoch is won while
        ``predecessor_gone_until`` lies ahead.

        Raises:
            AccessDenied: if the caller may not ask for it.
            ServiceFailed: if it did not happen; the NameNode is standby then.
        """
        self._check_caller(source, call, "transitionToActive")
        stage = self._stage
        if isinstance(stage, Loading):
            raise ServiceFailed(f"{stage.name} did not become active: {stage.reason()}")
        if self._not_active_in_safe_mode and (tip := self.safe_mode_tip()):
            raise ServiceFailed(f"{stage.name} did not become active: still in safe mode. {tip}")
        try:
            await stage.become_active(predecessor_gone_until=predecessor_gone_until)
        except TransitionRefused as refusal:
            raise ServiceFailed(f"{stage.name} did not become active: {refusal}") from None

    async def transition_to_standby(self, source: RequestSource, call: Call) -> None:
        """Become standby; return when the last segment is finalized.

        One that loads its image has nothing to give up: it agrees at once.

        Raises:
            AccessDenied: if the caller may not ask for it.
            ServiceFailed: if the edit log could not be closed; the process is stopping then.
        """
        self._check_caller(source, call, "transitionToStandby")
        stage = self._stage
        if isinstance(stage, Loading):
            return
        try:
            await stage.become_standby()
        except TransitionRefused as refusal:
            raise ServiceFailed(f"{stage.name} did not become standby: {refusal}") from None

    def _check_caller(self, source: RequestSource, call: Call, method: str) -> None:
        log.info("namenode.transition_asked", method=method, source=source.name, user=call.user)
        if call.user != self._superuser:
            raise AccessDenied(
                f"{method}: user {call.user!r} is not the superuser {self._superuser!r}"
            )
        if source is RequestSource.USER and self._automatic_failover:
            raise AccessDenied(
                f"{method}: automatic failover is on, and a change by hand would be undone; use "
                "`nnha haadmin -failover`"
            )
        if source is RequestSource.ZKFC and not self._automatic_failover:
            raise AccessDenied(
                f"{method}: asked by a ZKFC, but dfs.ha.automatic-failover.enabled is false here"
            )


def disk_trouble_of(directories: list[Path], *, reserved_bytes: int) -> Callable[[], str | None]:
    """Return a check that every given directory is there and has ``reserved_bytes`` left."""

    def check() -> str | None:
        for directory in directories:
            try:
                free = shutil.disk_usage(directory).free
            except OSError as failure:
                return f"{directory} cannot be used: {failure.strerror}"
            if free < reserved_bytes:
                return f"{directory} has {free} bytes left, at least {reserved_bytes} are wanted"
        return None

    return check
