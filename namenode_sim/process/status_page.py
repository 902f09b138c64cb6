"""The facts behind a NameNode's ``/status`` and ``/health``, before and after it is loaded."""

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Final

from ha.daemon.http.pages import PageAnswer, json_answer
from ha.daemon.http.probes import RoleSeen
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.rpc.metrics import METERS
from journal.links.metrics import APPEND_SECONDS
from namenode_sim.checkpoint.standby import StandbyCheckpointer
from namenode_sim.last_hour import HourRecorder, Totals
from namenode_sim.metrics import TAIL_LAG_SECONDS, TAIL_LAG_TRANSACTIONS
from namenode_sim.process.ha_service import NameNodeHaService
from namenode_sim.process.jmx import NameNodeBeans
from namenode_sim.process.loading import Loading
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.storage.local_copies import LocalCopies
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role

INITIALIZING: Final = "initializing"
"""Hadoop's name for the state before standby."""
LOADING: Final = "loading"


class LoadingPage:
    """What is shown while the image is loaded: the same keys, and how far the load is."""

    def __init__(self, place: NameNodeIdentity, loading: Loading, started_at: str) -> None:
        self._place = place
        self._loading = loading
        self._started_at = started_at

    def status(self) -> Mapping[str, object]:
        """Return facts of the same keys as ``StatusPage.status``."""
        return {
            "role": "namenode",
            "nameservice": self._place.address.nameservice,
            "namenode": self._place.address.namenode,
            "state": INITIALIZING,
            "activity": LOADING,
            "progress": round(self._loading.progress.share, 4),
            "epoch": None,
            "last_txid": None,
            "committed_txid": None,
            "applied_txid": None,
            "not_ready_reason": self._loading.reason(),
            "safe_mode": None,
            "files": None,
            "journal": [],
            "read_lease_valid": None,
            "local_edits": [],
            "local_edits_failed": {},
            "checkpoint": None,
            "started_at": self._started_at,
            "pid": os.getpid(),
        }

    def role(self) -> RoleSeen:
        """Return the role for balancers: neither active nor standby."""
        return RoleSeen(INITIALIZING)

    def not_ready(self) -> str | None:
        """Return why no load should come here."""
        return self._loading.reason()

    def trouble(self) -> str | None:
        """Return None: a process that loads is well, and must not be killed for it."""
        return None

    def jmx(self, _query: str) -> PageAnswer:
        return json_answer({"beans": []})

    def last_hour(self) -> Mapping[str, object]:
        return {"samples": []}


class StatusPage:
    """Reads the running parts when asked; keeps nothing but the time of the start."""

    def __init__(
        self,
        place: NameNodeIdentity,
        namenode: NameNode,
        face: NameNodeHaService,
        copies: LocalCopies,
        beans: NameNodeBeans,
        files: Callable[[], Mapping[str, object]],
        *,
        started_at: str,
        checkpoints: StandbyCheckpointer | None = None,
    ) -> None:
        self.jmx = beans.page
        self.hour = HourRecorder(self._totals)
        self.last_hour = self.hour.as_json
        self._place = place
        self._namenode = namenode
        self._face = face
        self._copies = copies
        self._checkpoints = checkpoints
        self._started_at = started_at
        self._files = files

    def status(self) -> Mapping[str, object]:
        """Return the facts about this NameNode; the keys never change."""
        namenode = self._namenode
        edit_log, writer = namenode.edit_log, namenode.writer
        applied = namenode.namespace.last_applied
        return {
            "role": "namenode",
            "nameservice": self._place.address.nameservice,
            "namenode": self._place.address.namenode,
            "state": "active" if namenode.state.role is Role.ACTIVE else "standby",
            "activity": namenode.state.role.value,
            "progress": 1.0,
            "epoch": namenode.epoch,
            "last_txid": edit_log.last_txid if edit_log is not None else applied,
            "committed_txid": edit_log.committed_txid if edit_log is not None else None,
            "applied_txid": applied,
            "not_ready_reason": self._face.not_ready_reason(),
            "safe_mode": self._face.safe_mode_tip() or None,
            "files": self._files(),
            "journal": [asdict(node) for node in writer.node_statuses()] if writer else [],
            "read_lease_valid": None if writer is None else writer.read_lease.valid(),
            "local_edits": self._copies.directories(),
            "local_edits_failed": self._copies.failed(),
            "checkpoint": None if self._checkpoints is None else self._checkpoints.status(),
            "started_at": self._started_at,
            "pid": os.getpid(),
        }

    def role(self) -> RoleSeen:
        """Return the role for balancers; a NameNode that is changing it is neither."""
        role = self._namenode.state.role
        match role:
            case Role.ACTIVE | Role.STANDBY:
                lag = self._namenode.tailer.lag_seconds if role is Role.STANDBY else None
                return RoleSeen(role.value, lag)
            case _:
                return RoleSeen(role.value)

    def not_ready(self) -> str | None:
        """Return why no load should come here, as an active or as a standby; None when it may."""
        if self._namenode.state.role is Role.ACTIVE:
            return None
        return self.trouble() or self._face.not_ready_reason() or None

    def measure(self) -> None:
        """Let the gauges of the tail be read from the running parts."""
        TAIL_LAG_SECONDS.set_function(self._tail_lag_seconds)
        TAIL_LAG_TRANSACTIONS.set_function(lambda: self._namenode.tailer.lag_transactions)

    def _tail_lag_seconds(self) -> float:
        if self._namenode.state.role is Role.ACTIVE:
            return 0.0
        lag = self._namenode.tailer.lag_seconds
        return math.nan if lag is None else lag

    def _totals(self) -> Totals:
        namenode, active = self._namenode, self._namenode.state.role is Role.ACTIVE
        lacking = self._files()["under_replicated"] if active else None
        return Totals(
            at=time.monotonic(),
            role=namenode.state.role.value,
            edits=namenode.namespace.last_applied,
            calls=METERS.answered(CLIENT_PROTOCOL),
            commits=[
                (float(one.labels["le"]), one.value)
                for metric in APPEND_SECONDS.collect()
                for one in metric.samples
                if one.name.endswith("_bucket")
            ],
            lag_seconds=None if active else namenode.tailer.lag_seconds,
            under_replicated=lacking if isinstance(lacking, int) else None,
        )

    def trouble(self) -> str | None:
        return "stopping" if self._namenode.state.role is Role.STOPPED else None
