"""Formats, clears and checks a nameservice's znodes for an operator.

Only the nameservice's own znode is ever deleted or given an ACL: those above it are shared.
"""

import asyncio
import sys
from dataclasses import dataclass

import click
import structlog

from ha.daemon.process import ExitWith
from ha.elector.zookeeper.breadcrumb import decode
from ha.elector.zookeeper.client import Session
from ha.elector.zookeeper.credentials import shown
from ha.elector.zookeeper.errors import BadBreadcrumb
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.znodes import (
    ScopeFacts,
    clear_parent,
    connected,
    ensure_parent,
    inspect_scope,
    lock_exists,
    parent_exists,
)

log = structlog.get_logger()

# Hadoop's exit codes, which scripts read: docs/reference/zkfc.md#start.
FAILED = 1
DENIED = 2
NO_PARENT_ZNODE = 3

MINIMUM_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Consent:
    """Whether the operator has confirmed already, or may be asked."""

    force: bool
    ask: bool


def connect_seconds(zookeeper: ZooKeeperSettings) -> float:
    """How long to try to reach ZooKeeper at the start."""
    return max(MINIMUM_CONNECT_SECONDS, zookeeper.session_timeout_seconds)


async def format_zookeeper(zookeeper: ZooKeeperSettings, consent: Consent) -> None:
    """Create the scope, empty; what is there goes, with consent."""
    async with connected(zookeeper, deadline_seconds=connect_seconds(zookeeper)) as session:
        if await parent_exists(session, zookeeper):
            await _ensure_consent(session, zookeeper, consent, verb="format")
            await clear_parent(session, zookeeper)
        await ensure_parent(session, zookeeper)
    log.info("zkfc.formatted", znode=zookeeper.scope)
    click.echo(f"Successfully created {zookeeper.scope} in ZooKeeper.")


async def clear_zookeeper(zookeeper: ZooKeeperSettings, consent: Consent) -> None:
    """Delete the scope and all in it; nothing to delete is no error."""
    async with connected(zookeeper, deadline_seconds=connect_seconds(zookeeper)) as session:
        if not await parent_exists(session, zookeeper):
            click.echo(f"There is no {zookeeper.scope} in ZooKeeper.")
            return
        await _ensure_consent(session, zookeeper, consent, verb="clear")
        await clear_parent(session, zookeeper)
    log.info("zkfc.cleared", znode=zookeeper.scope)
    click.echo(f"Deleted {zookeeper.scope} from ZooKeeper.")


async def check_zookeeper(zookeeper: ZooKeeperSettings) -> None:
    """Print what a zkfc would find, and end with the code that it would end with."""
    async with connected(zookeeper, deadline_seconds=connect_seconds(zookeeper)) as session:
        facts = await inspect_scope(session, zookeeper)
        granted = session.timeout_seconds
    lines = [
        f"ZooKeeper:        {zookeeper.hosts}{' (TLS)' if zookeeper.tls else ''}",
        f"session timeout:  {granted:g} s granted, {zookeeper.session_timeout_seconds:g} s asked",
        f"znode:            {zookeeper.scope}{'' if facts.formatted else ' (not there)'}",
    ]
    if facts.formatted:
        lines += _contents(facts)
    for line in lines:
        click.echo(line)
    if not facts.formatted:
        raise ExitWith(NO_PARENT_ZNODE, f"{zookeeper.scope} does not exist; create it: --format-zk")
    if not facts.may_write:
        raise ExitWith(
            FAILED,
            f"ZooKeeper refuses to let us create znodes in {zookeeper.scope}; compare its ACL "
            f"above with ha.zookeeper.auth or our certificate",
        )


def _contents(facts: ScopeFacts) -> list[str]:
    acl = ", ".join(sorted(map(shown, facts.acl)))
    differs = "" if facts.acl_as_configured else " (not as configured; --format-zk sets it)"
    return [
        f"ACL:              {acl}{differs}",
        f"we may write:     {'yes' if facts.may_write else 'NO'}",
        f"lock held by:     {_whose(facts.lock)}",
        f"last active:      {_whose(facts.breadcrumb)}",
        f"znodes in it:     {', '.join(facts.names) or 'none'}",
    ]


def _whose(content: bytes | None) -> str:
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
    if await lock_exists(session, zookeeper):
        # Somebody may be active by it: whoever comes next would find no breadcrumb, and not fence.
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
    if not await asyncio.to_thread(_answer, question):
        raise ExitWith(DENIED, denied + remedy)


def _answer(question: str) -> bool:
    """Yes or no from stdin.  The end of input is a no: Hadoop asks for ever."""
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
