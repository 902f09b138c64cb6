"""What the daemons say of themselves over HTTP, read with deadlines and without trust."""

import json
from collections.abc import Mapping

from deploy.local.cluster.processes import http_get
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class NameNodeStatus:
    """The parts of a NameNode's /status that the local cluster decides by."""

    state: str
    epoch: int | None
    last_txid: int
    not_ready_reason: str

    @property
    def ready(self) -> bool:
        """Whether it could become active now."""
        return not self.not_ready_reason


def status(url: str, *, deadline_seconds: float = 1.0) -> Mapping[str, object] | None:
    """Return a daemon's /status as it stands, or None without a sensible answer in time."""
    answer = http_get(f"{url}/status", deadline_seconds=deadline_seconds)
    if answer is None or answer[0] != 200:
        return None
    try:
        facts = json.loads(answer[1])
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None


def namenode_status(url: str, *, deadline_seconds: float = 1.0) -> NameNodeStatus | None:
    facts = status(url, deadline_seconds=deadline_seconds)
    if facts is None:
        return None
    epoch = facts.get("epoch")
    return NameNodeStatus(
        state=str(facts.get("state", "")),
        epoch=epoch if isinstance(epoch, int) else None,
        last_txid=_number(facts.get("last_txid")),
        not_ready_reason=str(facts.get("not_ready_reason") or ""),
    )


def has_loaded(url: str) -> bool:
    """Return whether a part answers, and is not a NameNode that still loads its image."""
    facts = status(url)
    if facts is None:
        return _actors_of_hadoops_datanode(url) is not None
    return facts.get("activity") != "loading"


def _actors_of_hadoops_datanode(url: str) -> list[Mapping[str, str]] | None:
    """Return what Hadoop's DataNode says of its NameNodes, or None where it is not one."""
    query = "jmx?qry=Hadoop:service=DataNode,name=DataNodeInfo"
    answer = http_get(f"{url}/{query}", deadline_seconds=1.0)
    if answer is None or answer[0] != 200:
        return None
    try:
        (bean,) = json.loads(answer[1])["beans"]
        return list(json.loads(bean["BPServiceActorInfo"]))
    except (ValueError, KeyError, TypeError):
        return None


def datanode_serves(url: str) -> bool:
    """Return whether a DataNode obeys an active NameNode and every NameNode has taken it."""
    facts = status(url)
    if facts is None:
        actors = _actors_of_hadoops_datanode(url) or []
        running = all(actor.get("ActorState") == "RUNNING" for actor in actors)
        return running and any(actor.get("NamenodeHaState") == "active" for actor in actors)
    namenodes = facts.get("namenodes")
    if not isinstance(namenodes, dict) or facts.get("obeyed") is None:
        return False
    return set(namenodes.values()) == {"registered"}


def zkfc_is_candidate(url: str) -> bool:
    """Return whether a ZKFC takes part in the election, and knows by now which has won it."""
    facts = status(url) or {}
    return facts.get("in_election") is True and facts.get("elector") in ("standby", "active")


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
