"""How pausing, resuming and draining may end.  Pure."""

from collections.abc import Mapping

from ha.console.result import Code, CommandOutcome, Ending, Reason
from ha.notices.model import BadNotice, Member

Members = Mapping[str, Member | BadNotice]


def seen(
    command: str,
    message: str,
    *,
    running: int,
    lacking: Members,
    target: str | None = None,
    holds: bool = True,
) -> Ending:
    """Return the ending of a notice that is written in ZooKeeper.

    ``lacking`` are the running ZKFCs that do not show it yet.  ``holds``: it is still what they are
    to obey.
    """
    if target is not None and not running:
        return Ending(
            command,
            CommandOutcome.DONE,
            Code.DONE,
            f"{message}; its ZKFC does not run now, and will obey when it starts",
            target=target,
        )
    if not lacking:
        who = (
            "its ZKFC has seen it"
            if target is not None
            else {0: "no ZKFC is running", 1: "the only running ZKFC has seen it"}.get(
                running, f"all {running} running ZKFCs have seen it"
            )
        )
        return Ending(command, CommandOutcome.DONE, Code.DONE, f"{message} ({who})", target=target)
    return Ending(
        command,
        CommandOutcome.FAILED,
        Code.NOT_SEEN_BY_ALL,
        f"{message}; but of {running} running ZKFCs, {len(lacking)} do not show it yet"
        + ("" if holds else ", and it is over, or another request has taken its place"),
        hint="it stays written, and they will obey once they have read it: nnha status"
        if holds
        else "see what holds now: nnha status",
        target=target,
        reasons=tuple(_lacking(name, one) for name, one in lacking.items()),
    )


def not_automatic(command: str) -> Ending:
    """Refuse the command, as there are no ZKFCs that could obey."""
    return Ending(
        command,
        CommandOutcome.REFUSED,
        Code.NOT_AUTOMATIC,
        "dfs.ha.automatic-failover.enabled is not set: nothing happens by itself anyway",
    )


def _lacking(name: str, member: Member | BadNotice) -> Reason:
    if isinstance(member, BadNotice):
        return Reason(name, str(member))
    return Reason(name, f"its ZKFC (process {member.pid}) does not show it yet")
