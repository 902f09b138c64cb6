"""What is wrong with a cluster, as far as one look shows it.  Pure."""

from collections.abc import Iterator

from ha.cluster.files_view import problems_of_files
from ha.cluster.unreachable import is_unknown
from ha.cluster.view import ClusterView
from ha.cluster.zookeeper_view import second_zkfc_text

BEHIND_WORTH_TELLING = 1000
"""Transactions that a JournalNode which is in sync may seem to lack, as all are asked in turn."""


def problems(view: ClusterView) -> tuple[str, ...]:
    """Everything that should not be so, the worst first; empty means healthy."""
    if view.is_silent:
        # Where nothing at all answers, the fault is more likely here than in all of it.
        return (no_answer_message(view),)
    return (
        *problems_of_roles(view),
        *_of_the_journal(view),
        *_of_files(view),
        *_of_processes(view),
        *(
            f"{second_zkfc_text(one)}; it may not join the election"
            for one in view.notices.namesakes
        ),
        *_of_drains(view),
        *view.certificates,
    )


def _of_drains(view: ClusterView) -> Iterator[str]:
    for name in view.drains:
        member = view.notices.members.get(name)
        if member is not None and member.hand_over_failure:
            yield f"{name} is drained and cannot hand over: {member.hand_over_failure}"


def no_answer_message(view: ClusterView) -> str:
    """Return the message for a look at which no process answered."""
    return (
        f"none of {len(view.errors)} processes gave an answer in {view.limit_seconds:g} s, so "
        "nothing is known of the cluster: check this machine's network and load, then ask again "
        "with more time (--timeout 10)"
    )


def problems_of_roles(view: ClusterView) -> Iterator[str]:
    """Report that not exactly one NameNode is active, or that another one holds the lock."""
    actives = view.actives
    unknown = [row.namenode for row in view.namenodes if is_unknown(row.error)]
    if len(actives) > 1:
        yield f"{' and '.join(actives)} both say that they are active"
    elif view.silent_lock_holder is not None and is_unknown(view.silent_lock_holder.error):
        name = view.silent_lock_holder.namenode
        yield f"no NameNode says that it is active; {name} holds the lock and gives no answer"
    elif not actives and unknown:
        yield (
            f"no NameNode says that it is active; {' and '.join(unknown)} "
            f"{'gives' if len(unknown) == 1 else 'give'} no answer and may be"
        )
    elif not actives:
        yield "no NameNode is active"
    elif view.lock.holder is not None and view.lock.holder != actives[0]:
        yield f"{actives[0]} is active, but {view.lock.holder} holds the lock"
    elif view.automatic_failover and view.lock.holder is None and view.lock.error is None:
        yield f"{actives[0]} is active, but no ZKFC holds the lock"


def _of_files(view: ClusterView) -> Iterator[str]:
    if view.active is None:
        return
    if view.active.files is not None:
        yield from problems_of_files(view.active.files)
    elif view.active.software is None and view.active.note is not None:
        yield f"whether files can be read is not known: {view.active.note}"


def _of_the_journal(view: ClusterView) -> Iterator[str]:
    count = len(view.journalnodes)
    if view.journal_lost:
        yield "the journal has no quorum: nothing can be written"
    elif view.journal_unknown:
        yield (
            "whether the journal has a quorum is not known: too many of its "
            f"{count} JournalNodes give no answer"
        )
    elif view.spare_journalnodes == 0 and count > 1:
        yield "the quorum can lose 0 more JournalNodes"
    for row in view.journalnodes:
        state = view.state_of(row)
        if state not in ("in sync", "up"):
            because = f": {row.failed_because}" if row.failed_because else ""
            yield f"JournalNode {row.node}: {state}{because}"
        elif (behind := view.behind(row)) is not None and behind > BEHIND_WORTH_TELLING:
            yield f"JournalNode {row.node} is {behind:,} transactions behind"


def _of_processes(view: ClusterView) -> Iterator[str]:
    for node in view.namenodes:
        if node.error is not None:
            yield f"NameNode {node.namenode}: {node.error}"
    for zkfc in view.zkfcs:
        if zkfc.error is not None:
            yield f"ZKFC of {zkfc.namenode}: {zkfc.error}"
    yield from _of_zookeeper(view)


def _of_zookeeper(view: ClusterView) -> Iterator[str]:
    for server in view.zookeepers:
        if server.error is not None:
            yield f"ZooKeeper {server.server}: {server.error}"
    needed = len(view.zookeepers) // 2 + 1
    serving = sum(row.error is None for row in view.zookeepers)
    unknown = sum(is_unknown(row.error) for row in view.zookeepers)
    if view.zookeepers and serving + unknown < needed:
        yield "ZooKeeper has no quorum: no failover is possible until it is back"
    elif serving < needed and view.zookeepers:
        yield "whether ZooKeeper has a quorum is not known"
    elif view.lock.error is not None:
        yield f"who holds the lock is not known: {view.lock.error}"


def formatting(view: ClusterView) -> str | None:
    """Return how to format the JournalNodes without storage; None if each has its own.

    Only where no node holds anything may the journal begin anew: initializing shared edits next to
    a node that holds acknowledged edits would replace them.
    """
    bare = [row.node for row in view.journalnodes if row.formatted is False]
    if not bare:
        return None
    if len(bare) == len(view.journalnodes):
        return "nnha namenode --format for a new file system, else --initialize-shared-edits"
    if view.spares[1] < 0:
        return "start the JournalNodes that do not answer; then nnha journal status"
    return "; ".join(f"nnha journal format --node {node}" for node in bare)
