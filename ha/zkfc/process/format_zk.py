"""Formats, clears and checks a nameservice's znodes for an operator, and sets their ACLs.

Only the nameservice's own znode and its children are changed: the znodes above it are shared.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
import structlog

from ha.conf.configuration import Configuration
from ha.conf.topology import namenodes, nameservice_of
from ha.console.command_audit import CommandAudit
from ha.daemon.process import ExitWith
from ha.elector.zookeeper import znodes
from ha.elector.zookeeper.acl_review import Fault, review, takeover_obstacle
from ha.elector.zookeeper.breadcrumb import decode
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import open_to_all
from ha.elector.zookeeper.errors import BadBreadcrumb, ZooKeeperRefused
from ha.elector.zookeeper.outcome import Done
from ha.elector.zookeeper.rights import shown_acl
from ha.elector.zookeeper.session_close import Closed, close_all
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.notices.store import drains_path, members_path, pause_path
from ha.record import dataclass
from ha.security.audit_text import Outcome, escape
from ha.zkfc.takeover.planned_fence import LEFT_ALONE, left_alone

log = structlog.get_logger()

# Hadoop's exit codes, which scripts read: docs/reference/zkfc.md#start.
FAILED = 1
DENIED = 2
NO_PARENT_ZNODE = 3

MINIMUM_CONNECT_SECONDS = 5.0
MOST_SHOWN = 12
"""The number of znodes with doubtful rights that are shown; hundreds may have one cause."""


@dataclass(frozen=True, slots=True)
class Consent:
    """Whether the operator has confirmed a change already, or may be asked."""

    force: bool
    ask: bool


@contextmanager
def audited(conf: Configuration, command: str, zookeeper: ZooKeeperSettings) -> Iterator[None]:
    """Write to the audit log how the change of the znodes in a ``with`` block ended."""
    audit = CommandAudit.configured(conf)
    try:
        yield
    except ExitWith as end:
        outcome = Outcome.REFUSED if end.code == DENIED else Outcome.FAILED
        audit.write(command, outcome, zookeeper.scope, end.message)
        raise
    except ZooKeeperRefused as failure:
        audit.write(command, Outcome.FAILED, zookeeper.scope, str(failure))
        raise
    except BaseException as failure:
        why = str(failure) or type(failure).__name__
        audit.write(command, Outcome.UNKNOWN, zookeeper.scope, why)
        raise
    audit.write(command, Outcome.DONE, zookeeper.scope)


def connect_seconds(zookeeper: ZooKeeperSettings) -> float:
    """Return how long a command tries to reach ZooKeeper, in seconds."""
    return max(MINIMUM_CONNECT_SECONDS, zookeeper.session_timeout_seconds)


async def format_zookeeper(
    zookeeper: ZooKeeperSettings, consent: Consent, *, keep: bool = False
) -> None:
    """Set the configured ACL on existing znodes, delete them with consent, and create the scope.

    With ``keep`` the ACLs are set and nothing is deleted, so a running cluster may be secured.
    """
    async with znodes.connected(zookeeper, deadline_seconds=connect_seconds(zookeeper)) as session:
        if await znodes.parent_exists(session, zookeeper):
            _report_acl_changes(
                await close_all(session, zookeeper, force=consent.force), zookeeper, keep=keep
            )
            if keep:
                return
            await _ensure_consent(session, zookeeper, consent, verb="format")
            await znodes.clear_parent(session, zookeeper)
        await znodes.ensure_parent(session, zookeeper)
    log.info("zkfc.formatted", znode=zookeeper.scope)
    click.echo(f"Successfully created {zookeeper.scope} in ZooKeeper.")


async def clear_zookeeper(zookeeper: ZooKeeperSettings, consent: Consent) -> None:
    """Delete the scope and all znodes in it, if it exists."""
    async with znodes.connected(zookeeper, deadline_seconds=connect_seconds(zookeeper)) as session:
        if not await znodes.parent_exists(session, zookeeper):
            click.echo(f"There is no {zookeeper.scope} in ZooKeeper.")
            return
        await _ensure_consent(session, zookeeper, consent, verb="clear")
        await znodes.clear_parent(session, zookeeper)
    log.info("zkfc.cleared", znode=zookeeper.scope)
    click.echo(f"Deleted {zookeeper.scope} from ZooKeeper.")


def _report_acl_changes(done: Closed, zookeeper: ZooKeeperSettings, *, keep: bool) -> None:
    """Print how many znodes got the configured ACL; warn of notices that anybody could write."""
    click.echo(
        f"{len(done.changed)} of {done.looked_at} znodes of {zookeeper.scope} had another ACL; "
        f"they have {shown_acl(done.acl)} now."
    )
    log.info("zkfc.acl_set", znode=zookeeper.scope, changed=[one.path for one in done.changed])
    obeyed = [
        one.path
        for one in done.changed
        if open_to_all(tuple(one.acl or ()))
        and one.path.startswith((pause_path(zookeeper), f"{drains_path(zookeeper)}/"))
    ]
    if obeyed and not open_to_all(zookeeper.acl):
        click.echo(
            f"warning: anybody could have written {', '.join(obeyed)}, which ZKFCs obey from now "
            f"on; see what they say: nnha status",
            err=True,
        )
    if done.refused:
        text = (
            f"ZooKeeper refuses to let us set the ACL of {', '.join(done.refused)}, made under "
            f"another identity; run this with that one, or delete them"
        )
        if keep:
            raise ExitWith(FAILED, text)
        click.echo(f"warning: {text}", err=True)


async def check_zookeeper(conf: Configuration, zookeeper: ZooKeeperSettings) -> None:
    """Print what a zkfc would find in ZooKeeper; raise ExitWith with its exit code."""
    async with znodes.connected(zookeeper, deadline_seconds=connect_seconds(zookeeper)) as session:
        ids = await session.who_am_i()
        known_as = ", ".join(ids.value) or "nobody" if isinstance(ids, Done) else "(not told)"
        try:
            facts = await znodes.inspect_scope(session, zookeeper)
        except ZooKeeperRefused as failure:
            raise ExitWith(FAILED, f"{failure}. {_explain_identity(known_as)}") from failure
        granted = session.timeout_seconds
    lines = [
        f"ZooKeeper:        {zookeeper.hosts}{' (TLS)' if zookeeper.tls else ''}",
        f"session timeout:  {granted:g} s granted, {zookeeper.session_timeout_seconds:g} s asked",
        f"we are:           {known_as}",
        f"znode:            {zookeeper.scope}{'' if facts.formatted else ' (not there)'}",
    ]
    if facts.formatted:
        lines += _describe_contents(facts, zookeeper)
        nodes = namenodes(conf, nameservice_of(conf))
        if facts.breadcrumb is not None and (foreign := left_alone(facts.breadcrumb, nodes)):
            lines.append(f"not configured:   the last active, {foreign}: {LEFT_ALONE}")
    for line in lines:
        click.echo(escape(line))
    if not facts.formatted:
        raise ExitWith(NO_PARENT_ZNODE, f"{zookeeper.scope} does not exist; create it: --format-zk")
    if not facts.may_write:
        raise ExitWith(
            FAILED,
            f"ZooKeeper refuses to let us create znodes in {zookeeper.scope} "
            f"({facts.probe.refused or 'to delete them'}). {_explain_identity(known_as)}",
        )
    if _is_breadcrumb_unwritable(facts, zookeeper):
        raise ExitWith(
            FAILED, f"A takeover by us would fail at the breadcrumb. {_explain_identity(known_as)}"
        )


def _explain_identity(known_as: str) -> str:
    return (
        f"ZooKeeper knows us as {known_as}: compare that with the ACL, and with ha.zookeeper.auth "
        f"or our certificate. ZKFCs of different identities can share the znodes only where "
        f"ha.zookeeper.acl names all of them; auth:: gives them to whoever made them"
    )


def _is_breadcrumb_unwritable(facts: znodes.ScopeFacts, zookeeper: ZooKeeperSettings) -> bool:
    return any(
        one.path == zookeeper.breadcrumb and one.fault in (Fault.UNSEEN, Fault.NOT_OURS)
        for one in review(facts.acls, zookeeper.acl, facts.probe.acl)
    )


def _describe_contents(facts: znodes.ScopeFacts, zookeeper: ZooKeeperSettings) -> list[str]:
    doubtful = review(facts.acls, zookeeper.acl, facts.probe.acl)
    own = [one for one in doubtful if one.path == zookeeper.scope]
    differs = " (not as configured; --format-zk sets it)" if own else ""
    alone = takeover_obstacle(facts.acls, zookeeper.acl, facts.probe.acl, members_path(zookeeper))
    return [
        f"ACL:              {shown_acl(facts.acl)}{differs}",
        f"we may write:     {'yes' if facts.may_write else 'NO'}",
        f"lock held by:     {_describe_holder(facts.lock)}",
        f"last active:      {_describe_holder(facts.breadcrumb)}",
        f"znodes in it:     {', '.join(facts.names) or 'none'}",
        *(f"doubtful rights:  {one.path}: {one.text}" for one in doubtful[:MOST_SHOWN]),
        *(
            [f"                  and {len(doubtful) - MOST_SHOWN} more"]
            * (len(doubtful) > MOST_SHOWN)
        ),
        *([f"identities:       {alone}"] if alone else []),
    ]


def _describe_holder(content: bytes | None) -> str:
    if content is None:
        return "nobody"
    try:
        info = decode(content)
    except BadBreadcrumb as failure:
        return f"bytes that cannot be decoded ({failure})"
    return f"{info.namenode} ({info.hostname}:{info.port}, zkfc port {info.zkfc_port})"


async def _ensure_consent(
    session: Session, zookeeper: ZooKeeperSettings, consent: Consent, *, verb: str
) -> None:
    if consent.force:
        return
    scope = zookeeper.scope
    denied = f"{scope} exists in ZooKeeper at {zookeeper.hosts}, and was left as it is; "
    remedy = f"to {verb} it, stop all NameNodes and zkfcs of the nameservice and add --force"
    if await znodes.lock_exists(session, zookeeper):
        # Its owner's NameNode may be active.  The next controller would find no breadcrumb, and
        # become active without fencing it.
        raise ExitWith(DENIED, f"{denied}the lock is held: a zkfc is running; {remedy}")
    if not consent.ask:
        raise ExitWith(DENIED, denied + remedy)
    question = (
        f"===============================================\n"
        f"The configured parent znode {scope} already exists.\n"
        f"Are you sure you want to clear all failover information from ZooKeeper?\n"
        f"WARNING: Before proceeding, ensure that all HDFS services and failover controllers are "
        f"stopped!\n"
        f"===============================================\n"
        f"Proceed {'formatting' if verb == 'format' else 'clearing'} {scope}? (Y or N) "
    )
    if not await asyncio.to_thread(_read_answer, question):
        raise ExitWith(DENIED, denied + remedy)


def _read_answer(question: str) -> bool:
    """Read yes or no from stdin.  The end of input means no; Hadoop asks for ever."""
    while True:
        click.echo(question, nl=False, err=True)
        line = sys.stdin.readline()
        match line.strip().lower():
            case "y" | "yes":
                return True
            case "n" | "no":
                return False
            case _ if not line:
                click.echo("no answer: taken as N", err=True)
                return False
            case other:
                click.echo(f"Invalid input: {other}", err=True)
