"""Checks of ``nnha doctor`` on what one look at the cluster shows.  Pure.

See docs/reference/operations.md#doctor.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import assert_never

from ha.cluster import agreement
from ha.cluster.candidates import Readiness, failover_blockers, ranked, readiness, until
from ha.cluster.check_result import Finding, fail, ok, unknown, warn
from ha.cluster.files_view import problems_of_files
from ha.cluster.problems import formatting, no_answer_message
from ha.cluster.unreachable import Absence, absence_of, ask_again, is_silence
from ha.cluster.view import ClusterView
from ha.cluster.zookeeper_view import second_zkfc_text
from ha.console.durations import since
from ha.notices.model import FailoverKind, FailoverResult

FEW_MEMBERS = 3
LITTLE_DISK = 0.20
NO_DISK = 0.05
FAR_BEHIND = 10_000
"""Transactions a standby may lack; more take a while to catch up in a failover."""
LONG_PAUSE = timedelta(hours=4)
FLAPPING_COUNT = 3
FLAPPING_WINDOW = timedelta(minutes=10)


def check_cluster(view: ClusterView) -> Iterator[Finding]:
    """Run every check of this module, in the order of a reader's interest."""
    if view.is_silent:
        yield unknown("cluster", no_answer_message(view), "nnha status --timeout 10")
        return
    yield _roles(view)
    yield _failover(view)
    yield from _namenodes(view)
    yield from _data(view)
    yield from _journal(view)
    for one in view.certificates:
        yield warn("certificate", one, "nnha security rotate")
    if drift := agreement.configuration_drift(view):
        yield warn("configuration", drift, agreement.DRIFT_ADVICE)
    if view.automatic_failover:
        yield from _zookeeper(view)
        yield from _zkfcs(view)
        yield from _notices(view)
        yield _history(view)


def check_clocks(found: Sequence[agreement.Skew]) -> Iterator[Finding]:
    """Judge the clocks of this machine and of the hosts whose daemons answered."""
    faults = tuple(agreement.clock_faults(found))
    told = sum(skew is not None for _, _, skew in found)
    yield from (warn("clocks", one, agreement.CLOCK_ADVICE) for one in faults)
    if not told:
        yield unknown("clocks", "no daemon's status page answers from here")
    elif not faults:
        yield ok(
            "clocks", f"{told} daemons agree with this machine to {agreement.CLOCK_SECONDS:g} s"
        )


def _roles(view: ClusterView) -> Finding:
    actives = view.actives
    if len(actives) > 1:
        found = f"{' and '.join(actives)} both say that they are active"
        return fail("one active", found, "nnha status -w; it should end within seconds")
    if not actives and (silent := [row for row in view.namenodes if row.may_be_active]):
        names = " and ".join(row.namenode for row in silent)
        found = f"no NameNode says that it is active; {names} gave no answer, and may be"
        return unknown("one active", found, "nnha explain --timeout 10")
    if not actives:
        return fail("one active", "no NameNode is active", "nnha explain")
    holder = view.lock.holder
    if holder not in (None, actives[0]):
        found = f"{actives[0]} is active, but {holder} holds the lock"
        return fail("one active", found, "nnha status -w; it should end within seconds")
    if view.automatic_failover and holder is None and view.lock.error is None:
        found = f"{actives[0]} is active, but no ZKFC holds the lock"
        return fail("one active", found, "nnha status -w; it should end within seconds")
    return ok("one active", f"{actives[0]}, epoch {view.epoch if view.epoch else 'unknown'}")


def _failover(view: ClusterView) -> Finding:
    if not view.automatic_failover:
        return warn(
            "failover ready",
            "dfs.ha.automatic-failover.enabled is not set",
            "set it to true and run a ZKFC beside each NameNode",
        )
    reasons = failover_blockers(view)
    if readiness(view) is Readiness.UNKNOWN:
        return unknown("failover ready", "; ".join(reasons), "nnha explain --timeout 10")
    if reasons:
        return fail("failover ready", "; ".join(reasons), "nnha explain")
    return ok("failover ready", f"{ranked(view)[0].namenode} could take over")


def _namenodes(view: ClusterView) -> Iterator[Finding]:
    for row in view.namenodes:
        check = f"NameNode {row.namenode}"
        lag = view.lag(row)
        if row.error is not None:
            yield _absent(check, row.address, row.error)
        elif row.note is not None and not row.of_hadoop:
            yield warn(check, f"{row.address}: {row.note}", "open its HTTP port to operators")
        elif lag is not None and lag > FAR_BEHIND:
            yield warn(check, f"{lag:,} transactions behind", "see its log: does it tail edits?")
        else:
            yield ok(check, f"{row.address}: {row.state}")


def _data(view: ClusterView) -> Iterator[Finding]:
    """Judge blocks and DataNodes by what the active knows of them."""
    active = view.active
    if active is None:
        return
    files = active.files
    if files is None:
        if active.software is None and active.note is not None:
            yield unknown("data", f"{active.namenode}: {active.note}", "nnha status --timeout 10")
        return
    for found in problems_of_files(files):
        judge = fail if files.unreadable or files.safe_mode is not None else warn
        yield judge("data", found.partition("  → ")[0], "nnha datanodes")
    if not any(problems_of_files(files)):
        nodes = f"{files.heard_datanodes} DataNodes are heard"
        yield ok("data", f"{nodes}; all {files.blocks:,} blocks can be read")


def _absent(check: str, address: str, error: str) -> Finding:
    """Report a process that gave no usable answer; it is a failure only if it is surely gone."""
    found = f"{address}: {error}"
    match absence_of(error):
        case Absence.DOWN:
            return fail(check, found, "start it, or open the port")
        case Absence.ERROR:
            return fail(check, found, "see its log")
        case Absence.UNKNOWN:
            return unknown(check, found, ask_again(address.rsplit(":", 1)[0]))
    assert_never(absence_of(error))


def _journal(view: ClusterView) -> Iterator[Finding]:
    count = len(view.journalnodes)
    if not count:
        yield unknown("journal", "dfs.namenode.shared.edits.dir names no JournalNodes")
        return
    yield _size("journal size", count, "JournalNode")
    hosts = {row.node.rsplit(":", 1)[0] for row in view.journalnodes}
    if len(hosts) < count:
        found = f"{count} JournalNodes on {len(hosts)} host{'s' if len(hosts) > 1 else ''}"
        yield warn("journal hosts", found, "give each JournalNode a host of its own")
    else:
        yield ok("journal hosts", f"each of {count} on its own")
    yield _majority(view)
    yield from _disks(view)


def _majority(view: ClusterView) -> Finding:
    (least, most), count = view.spares, len(view.journalnodes)
    lost = [
        f"{row.node}: {view.state_of(row)}"
        for row in view.journalnodes
        if view.state_of(row) not in ("in sync", "up")
    ]
    if all(view.takes_part(row) is not False for row in view.journalnodes) and lost:
        return unknown("journal majority", "; ".join(lost), "nnha journal status --timeout 10")
    if most < 0:
        remedy = formatting(view) or "start them: nothing can be written"
        return fail("journal majority", "; ".join(lost), remedy)
    if lost:
        return fail(
            "journal majority",
            f"can lose {'' if least == most else 'at most '}{most} more; {'; '.join(lost)}",
            formatting(view) or "restore them before another one fails: nnha journal status",
        )
    return ok("journal majority", f"all {count} take part")


def _disks(view: ClusterView) -> Iterator[Finding]:
    for row in view.journalnodes:
        if row.disk_free_bytes is None or not row.disk_total_bytes:
            continue
        share = row.disk_free_bytes / row.disk_total_bytes
        check, found = f"disk of {row.node}", f"{share:.0%} free"
        if share < NO_DISK:
            yield fail(check, found, "make room now: a full disk stops the JournalNode")
        elif share < LITTLE_DISK:
            yield warn(check, found, "make room")
        else:
            yield ok(check, found)


def _zookeeper(view: ClusterView) -> Iterator[Finding]:
    count = len(view.zookeepers)
    lost = [row for row in view.zookeepers if row.error is not None]
    found = "; ".join(f"{row.server}: {row.error}" for row in lost)
    if is_silence(view.lock.error):
        yield unknown("ZooKeeper", str(view.lock.error), "nnha doctor --timeout 10")
    elif view.lock.error is not None:
        yield fail("ZooKeeper", view.lock.error, "no failover is possible until it is back")
    elif lost and all(is_silence(row.error) for row in lost):
        yield unknown("ZooKeeper", found, "nnha doctor --timeout 10")
    elif lost:
        yield fail("ZooKeeper", found, "restore them before another one fails")
    else:
        yield ok("ZooKeeper", f"{count} of {count} servers answer")
    yield _size("ZooKeeper size", count, "server")


def _size(check: str, count: int, what: str) -> Finding:
    found = f"{count} {what}{'s' if count > 1 else ''}, may lose {(count - 1) // 2}"
    if count < FEW_MEMBERS or count % 2 == 0:
        return warn(check, found, f"run 3 or 5 {what}s")
    return ok(check, found)


def _zkfcs(view: ClusterView) -> Iterator[Finding]:
    for row in view.zkfcs:
        check = f"ZKFC of {row.namenode}"
        if row.error is not None:
            yield _absent(check, row.address, row.error)
        elif row.last_failure is not None:
            found = f"its last takeover failed: {row.last_failure}"
            yield fail(check, found, f"nnha fence test {row.namenode}, nnha history")
        elif row.note is not None and "status page" in row.note:
            yield warn(
                check,
                row.note,
                f"set nnha.zkfc.http-address.{view.nameservice}.{row.namenode} to an address "
                "that operators reach",
            )
        else:
            yield ok(check, f"{row.address}: {row.health}")
    for one in view.notices.namesakes:
        yield fail(
            f"ZKFC of {one.namenode}",
            f"{second_zkfc_text(one)}, at {one.zkfc_rpc}; it may not join the election",
            "stop one of the two, or give it its own dfs.ha.namenode.id",
        )
    users = {name: one.user for name, one in view.notices.members.items() if one.user}
    if len(set(users.values())) > 1:
        yield warn(
            "users of ZKFCs",
            ", ".join(f"{name} as {user}" for name, user in sorted(users.items()))
            + ": they deny each other hand-overs",
            "run all as one user, or name these users in dfs.cluster.administrators",
        )
    versions = {one.version for one in view.notices.members.values()}
    if len(versions) > 1:
        told = ", ".join(f"{n} {m.version}" for n, m in sorted(view.notices.members.items()))
        yield warn("versions", told, "upgrade the older ones")
    elif versions:
        yield ok("versions", f"all ZKFCs run {versions.pop()}")


def _notices(view: ClusterView) -> Iterator[Finding]:
    pause = view.pause
    if pause is None:
        yield ok("pause", "none")
    elif pause.until is None or view.moment - pause.since > LONG_PAUSE:
        found = f"for {since(pause.since, view.moment)}, {until(pause)}"
        yield fail("pause", found, "if it is no longer needed: nnha resume")
    else:
        yield warn("pause", until(pause), "nnha resume")
    for name, one in view.drains.items():
        yield warn("drain", f"{name}: {until(one)}", f"nnha drain {name} --end")
    for problem in view.notices.unreadable:
        yield fail("notices", problem, "read that znode, and delete it if it is of no use")


def _history(view: ClusterView) -> Finding:
    recent = [
        one.record
        for one in view.notices.history
        if one.record is not None and view.moment - one.record.at < FLAPPING_WINDOW
    ]
    failed = [one for one in recent if one.result is FailoverResult.FAILED]
    minutes = FLAPPING_WINDOW // timedelta(minutes=1)
    if failed:
        found = f"{len(failed)} failed in the last {minutes} minutes: {failed[0].failure}"
        return fail("failovers", found, "nnha history")
    automatic = [one for one in recent if one.actor is None and one.kind is FailoverKind.AUTO]
    if len(automatic) >= FLAPPING_COUNT:
        found = f"{len(automatic)} automatic ones in the last {minutes} minutes"
        return warn("failovers", found, "nnha history; nnha pause while you look for the cause")
    return ok("failovers", f"{len(recent)} in the last {minutes} minutes")
