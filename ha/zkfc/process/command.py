"""The command ``nnha zkfc``: run a failover controller, or prepare ZooKeeper for one."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import structlog

from fencing.fencer import load_code_of
from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.hazards import Daemon
from ha.conf.keys import cluster as keys
from ha.conf.keys.key import Key
from ha.conf.listening import Door, required_door
from ha.conf.topology import NameNodeAddress, local_namenode, nameservice_of
from ha.console.log_options import log_options
from ha.console.options import configuration
from ha.daemon.binding import listen_at
from ha.daemon.end_code import end_code
from ha.daemon.exposure import check_exposure, log_in_as
from ha.daemon.facts import publish_facts
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.probes import RoleSeen
from ha.daemon.logs import LogOptions, configure_logging
from ha.daemon.notify import SERVICE
from ha.daemon.process import ExitWith, run_daemon
from ha.daemon.start_check import check_start
from ha.daemon.version import version
from ha.elector.keeper import KazooKeeper
from ha.elector.model import Role
from ha.elector.zookeeper.credentials import open_to_all
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.open_sessions import OpenSessions
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.elector.zookeeper.settings import ZooKeeperSettings, zookeeper_settings
from ha.notices.board import Board
from ha.rpc.java_names import HA_SERVICE_PROTOCOL, ZKFC_PROTOCOL
from ha.rpc.server import RpcServer
from ha.rpc.spare_connection import SpareConnection, SpareConnections
from ha.security.access_control import AccessControl
from ha.zkfc.guard.guard import Guard, end_process
from ha.zkfc.pages.gauges import publish_readings
from ha.zkfc.process import format_zk as process_format_zk
from ha.zkfc.process.controller import Controller, ElectionImpossible
from ha.zkfc.process.kept_session import KeptSession, close_inherited
from ha.zkfc.process.open_znodes import refuse_open_znodes
from ha.zkfc.process.supervisor import supervise
from ha.zkfc.process.wait_for_zookeeper import BoardAfter, ZooKeeperWait
from ha.zkfc.settings import settings as settings_settings
from ha.zkfc.surroundings.surroundings import Surroundings

log = structlog.get_logger()

# Hadoop's exit codes, which scripts read: docs/reference/zkfc.md#start.
NO_FENCER = 4
NO_AUTO_FAILOVER = 5
NO_ZOOKEEPER = 6

READY_WITHOUT_ELECTION_SECONDS = 10.0
"""How long systemd delays the units after us while our controller cannot join the election."""
STANDING_LOOK_SECONDS = 0.05
STANDING = frozenset({Role.STANDBY, Role.TAKING_OVER, Role.ACTIVE})

KeepTicket = Callable[[SessionTicket | None], None]
Main = Callable[[asyncio.Event, SessionTicket | None, KeepTicket], Awaitable[None]]


class _BadUsageError(click.UsageError):
    exit_code = process_format_zk.FAILED


class _Command(click.Command):
    """Exits with 1 for a bad argument, as Hadoop does: click's 2 means "format denied" here."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            left = super().parse_args(ctx, args)
        except click.UsageError as failure:
            raise _BadUsageError(failure.message, failure.ctx) from failure
        if ctx.params.get("keep") and not ctx.params.get("format_zk"):
            raise _BadUsageError("--keep goes with --format-zk", ctx)
        return left


@click.command(cls=_Command, context_settings={"help_option_names": ["-h", "-help", "--help"]})
@configuration
@click.option("--format-zk", "-formatZK", is_flag=True, help="Create the znodes, then exit.")
@click.option(
    "--keep", is_flag=True, help="With --format-zk: only set the ACLs of znodes that are there."
)
@click.option("--clear-zk", is_flag=True, help="Delete the znodes, then exit.")
@click.option("--check-zk", is_flag=True, help="Show what is in ZooKeeper, then exit.")
@click.option(
    "--force",
    "-force",
    is_flag=True,
    help="Format or clear without asking, even if the lock is held.",
)
@click.option(
    "--non-interactive", "-nonInteractive", is_flag=True, help="Refuse instead of asking."
)
@click.option("--supervised", is_flag=True, help="If it is killed, restart it in the same session.")
@log_options
def zkfc(  # noqa: PLR0913 - its options
    conf_dir: Path | None,
    overrides: Sequence[str],
    format_zk: bool,  # noqa: FBT001 - click gives flags so
    keep: bool,  # noqa: FBT001
    clear_zk: bool,  # noqa: FBT001
    check_zk: bool,  # noqa: FBT001
    force: bool,  # noqa: FBT001
    non_interactive: bool,  # noqa: FBT001
    supervised: bool,  # noqa: FBT001
    log_as: LogOptions,
) -> None:
    """Run the failover controller of the local NameNode.

    While no ZooKeeper answers it waits; the three tasks on znodes end with 6 then.

    \b
    Exit codes: 0 formatted, cleared, checked, or stopped by a signal; 1 failed;
    2 format or clear denied; 3 ZooKeeper is not formatted; 4 no usable fencing;
    5 automatic failover is off; 6 no ZooKeeper; 7 it stood still and gave its
    lock up: start it again; 78 would be open to strangers.
    """
    once = "format" if format_zk else "clear" if clear_zk else "check" if check_zk else None
    if once is None:
        configure_logging("zkfc", level=log_as.level, form=log_as.form)
    else:
        # An operator waits for one answer, so failed attempts to connect are not logged.
        configure_logging("zkfc", level="error", libraries="critical")

    async def main(stop: asyncio.Event, ticket: SessionTicket | None, note: KeepTicket) -> None:
        try:
            conf = load_configuration(conf_dir, overrides)
            consent = process_format_zk.Consent(force=force, ask=not non_interactive)
            match [format_zk, clear_zk, check_zk]:
                case [True, False, False]:
                    zookeeper = _load_zookeeper_settings(conf, creating=True)
                    with process_format_zk.audited(conf, "zkfc --format-zk", zookeeper):
                        await process_format_zk.format_zookeeper(zookeeper, consent, keep=keep)
                case [False, True, False]:
                    zookeeper = _load_zookeeper_settings(conf)
                    with process_format_zk.audited(conf, "zkfc --clear-zk", zookeeper):
                        await process_format_zk.clear_zookeeper(zookeeper, consent)
                case [False, False, True]:
                    await process_format_zk.check_zookeeper(conf, _load_zookeeper_settings(conf))
                case [False, False, False]:
                    await _serve(conf, *_load_settings(conf), stop, ticket, note)
                case _:
                    raise ExitWith(
                        process_format_zk.FAILED,
                        "Give one of --format-zk, --clear-zk and --check-zk",
                    )
        except ConfigurationError as failure:
            raise ExitWith(1 if once else end_code(failure), str(failure)) from failure
        except ZooKeeperRefused as failure:
            raise ExitWith(process_format_zk.FAILED, str(failure)) from failure
        except ZooKeeperUnavailable as failure:
            aim = f"{once} the znodes" if once else "start failover controller"
            raise ExitWith(NO_ZOOKEEPER, f"Unable to {aim}: {failure}") from failure

    sys.exit(_run(main, supervised=supervised))


def _run(main: Main, *, supervised: bool) -> int:
    def run(ticket: SessionTicket | None, keep: KeepTicket) -> int:
        return run_daemon("zkfc", lambda stop: main(stop, ticket, keep))

    if supervised:
        return supervise(lambda ticket, slot: run(ticket, slot.put))
    return run(None, lambda _: None)


def _load_settings(conf: Configuration) -> tuple[settings_settings.ZkfcSettings, AccessControl]:
    log_in_as(conf, Daemon.ZKFC)
    settings = settings_settings.zkfc_settings(conf)
    check_start(conf, Daemon.ZKFC)
    if settings.zookeeper.warning:
        log.warning("configuration.warning", text=settings.zookeeper.warning)
    own = settings.own
    doors = [_door(conf, key, own) for key in (keys.ZKFC_PORT, keys.ZKFC_HTTP)]
    access = check_exposure(conf, Daemon.ZKFC, doors)
    refuse_open_znodes(conf, settings.zookeeper, nameservice=own.nameservice, namenode=own.namenode)
    _check_automatic(conf, own.nameservice)
    return settings, access


def _door(conf: Configuration, key: Key[Any], own: NameNodeAddress) -> Door:
    return required_door(conf, key, nameservice=own.nameservice, namenode=own.namenode)


def _load_zookeeper_settings(conf: Configuration, *, creating: bool = False) -> ZooKeeperSettings:
    """Return the settings of the nameservice's znodes; a NameNode need not run on this host.

    ``creating``: znodes will be created, so the ACL must not let anybody write them.
    """
    nameservice = nameservice_of(conf)
    try:
        own = local_namenode(conf).namenode
    except ConfigurationError:
        if conf.get(keys.NAMENODE_ID) is not None:
            raise
        own = None
    settings = zookeeper_settings(conf, nameservice=nameservice, namenode=own)
    for warning in (one for one in (*conf.warnings, settings.warning) if one):
        click.echo(f"warning: {warning}", err=True)
    if creating:
        refuse_open_znodes(conf, settings, nameservice=nameservice, namenode=own)
    _check_automatic(conf, nameservice)
    return settings


def _check_automatic(conf: Configuration, nameservice: str) -> None:
    if not settings_settings.automatic_failover(conf, nameservice):
        raise ExitWith(
            NO_AUTO_FAILOVER,
            f"Automatic failover is not enabled for nameservice {nameservice}; set "
            f"{keys.AUTO_FAILOVER.name} to true, here and for the NameNodes, to run a zkfc",
        )


# -- run -------------------------------------------------------------------------------------


async def _serve(
    conf: Configuration,
    settings: settings_settings.ZkfcSettings,
    access: AccessControl,
    stop: asyncio.Event,
    ticket: SessionTicket | None,
    note: KeepTicket,
) -> None:
    zookeeper, own = settings.zookeeper, settings.own
    node = f"{own.nameservice}.{own.namenode}"
    try:
        settings = replace(settings, fencing=settings_settings.fencing_plans(conf, settings))
    except ConfigurationError as failure:
        raise ExitWith(NO_FENCER, f"Fencing is not usable. {failure}") from failure
    sessions = OpenSessions()
    kept = KeptSession(settings.session_dir, node, f"{zookeeper.hosts}{zookeeper.scope}", note)
    contact = ZooKeeperWait(zookeeper, node)
    spares = SpareConnections(
        SpareConnection(lambda: own.service, HA_SERVICE_PROTOCOL),
        SpareConnection(lambda: controller.hand_over.likely_lock_holder(), ZKFC_PROTOCOL),
    )
    controller = Controller(
        settings,
        keeper=lambda post, released: KazooKeeper(
            zookeeper,
            post,
            on_release=released,
            ticket=ticket or kept.take(),
            keep_ticket=kept.keep,
            open_session=sessions.open,
        ),
        board=lambda tell: BoardAfter(
            contact, Board(zookeeper, own.namenode, tell, open_session=sessions.open)
        ),
        version=version(),
        around=Surroundings(take_ready=spares.take, serve=partial(RpcServer, access=access)),
    )
    endpoint = Endpoint(
        status=lambda: status_page(controller, waiting=contact.describe()),
        healthy=lambda: contact.describe() or controller.failover_obstacle(),
        role=lambda: RoleSeen(controller.believed.value),
        access=access,
    )
    publish_readings(node, controller)
    publish_facts("zkfc", conf, open_to=_list_open_doors(settings))
    await listen_at(_door(conf, keys.ZKFC_HTTP, own), endpoint.start)
    methods = [method for plan in settings.fencing.values() for method in plan.methods]
    loading = asyncio.create_task(asyncio.to_thread(load_code_of, methods))
    tasks = close_inherited(controller, contact.reached), _notify_ready(controller), spares.run()
    guard = Guard(
        controller.duties,
        session_seconds=lambda: _session_seconds(controller, zookeeper),
        end=partial(end_process, namenode=own.namenode, give_up=(kept.forget, sessions.end_all)),
    )
    try:
        async with _run_during(*tasks), guard.watching():
            await _run_until_stopped(controller, contact, stop)
    finally:
        await endpoint.stop()
        await loading


@contextlib.asynccontextmanager
async def _run_during(*work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run these coroutines as tasks during a ``with`` block."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _notify_ready(controller: Controller) -> None:
    """Notify systemd when we are in the election, or READY_WITHOUT_ELECTION_SECONDS are over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(READY_WITHOUT_ELECTION_SECONDS):
            while controller.elector.state.role not in STANDING:  # noqa: ASYNC110 - no event of it
                await asyncio.sleep(STANDING_LOOK_SECONDS)
    SERVICE.ready()


def _session_seconds(controller: Controller, zookeeper: ZooKeeperSettings) -> float:
    """Return the session's timeout: the granted one if it is less than the configured one."""
    granted = controller.session_timeout_seconds or zookeeper.session_timeout_seconds
    return min(granted, zookeeper.session_timeout_seconds)


def status_page(controller: Controller, *, waiting: str = "") -> Mapping[str, object]:
    """Return this controller's /status; ``waiting`` says why it still waits for ZooKeeper."""
    page = controller.observer.status(
        controller.monitor.state,
        controller.elector.state,
        controller.candidacy,
        controller.elector.keeper,
        off_because=waiting or controller.absence.describe(),
        handing_over_from=controller.hand_over.ceding_namenode,
        witness=controller.witness.description,
    )
    return {**page, "zookeeper": "connecting"} if waiting else page


async def _run_until_stopped(
    controller: Controller, contact: ZooKeeperWait, stop: asyncio.Event
) -> None:
    running = asyncio.create_task(controller.run())
    stopping = asyncio.create_task(stop.wait())
    reaching = asyncio.create_task(contact.wait_until_formatted())
    ends = {running, stopping}
    try:
        await asyncio.wait({*ends, reaching}, return_when=asyncio.FIRST_COMPLETED)
        if reaching.done():
            await reaching  # raises if waiting longer cannot help
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await controller.hand_over_before_stop()
    finally:
        for task in (stopping, reaching):
            task.cancel()
        await asyncio.gather(stopping, reaching, return_exceptions=True)
        if not running.done():
            running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            try:
                await running
            except ElectionImpossible as failure:
                raise ExitWith(
                    process_format_zk.FAILED, f"The election cannot go on: {failure}"
                ) from failure


def _list_open_doors(settings: settings_settings.ZkfcSettings) -> Sequence[str]:
    """Return the interfaces on which this controller accepts requests without authentication."""
    anybody = open_to_all(settings.zookeeper.acl)
    return ("rpc", "http", "zookeeper-acl") if anybody else ("rpc", "http")
