"""``nnha web``: the daemon that shows the cluster as a page."""

import asyncio
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ha.cluster.daemon_queries import load_journal_probe, look_at
from ha.cluster.query import fetch
from ha.cluster.view import ClusterView
from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.hazards import Daemon
from ha.conf.keys import web as keys
from ha.conf.listening import Door
from ha.conf.topology import HostPort, namenodes, nameservice_of
from ha.console.log_options import log_options
from ha.console.options import configuration, timeout_option
from ha.daemon.binding import binding
from ha.daemon.end_code import end_code
from ha.daemon.exposure import check_exposure
from ha.daemon.facts import publish_facts
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.hosts import allowed_hosts
from ha.daemon.logs import LogOptions, configure_logging
from ha.daemon.notify import SERVICE
from ha.daemon.process import ExitWith, run_daemon
from ha.daemon.start_check import check_start
from ha.security.access_control import AccessControl
from ha.web.hours import Hours
from ha.web.kept_session import KeptConnections, KeptSession
from ha.web.poller import ClusterPoller
from ha.web.records import Records

if TYPE_CHECKING:
    from aiohttp import web as aiohttp_web

NAME = "web"
LOOK_SECONDS = 1.0


@click.command("web")
@configuration
@click.option("-ns", "--nameservice", default=None, help="Which nameservice, if several.")
@timeout_option(LOOK_SECONDS)
@log_options
def web(
    *,
    conf_dir: Path | None,
    overrides: tuple[str, ...],
    nameservice: str | None,
    timeout_seconds: float,
    log_as: LogOptions,
) -> None:
    """Show the cluster as a page, live, until SIGTERM; it changes nothing.

    It listens on nnha.web.http-address.  Run one next to each NameNode: it holds no state.

    Exit codes: 0 stopped on request, 1 it could not start, 2 wrong usage, 78 would be open to
    strangers (nnha.security.mode).
    """
    configure_logging(NAME, level=log_as.level, form=log_as.form)
    try:
        conf = load_configuration(conf_dir, overrides)
        name = nameservice or nameservice_of(conf)
        namenodes(conf, name)
        check_start(conf, Daemon.WEB)
        at = conf.get(keys.WEB_HTTP)
        access = check_exposure(conf, Daemon.WEB, [Door(keys.WEB_HTTP.name, at.host, at.port)])
    except ConfigurationError as problem:
        click.echo(f"nnha {NAME}: {problem}", err=True)
        sys.exit(end_code(problem))
    except ExitWith as refusal:
        click.echo(f"nnha {NAME}: {refusal.message}", err=True)
        sys.exit(refusal.code)
    publish_facts(NAME, conf, open_to=("http",))
    serve = partial(_serve, conf, name, access, at, timeout_seconds)
    sys.exit(run_daemon(NAME, serve))


async def _serve(
    conf: Configuration,
    nameservice: str,
    access: AccessControl,
    at: HostPort,
    seconds: float,
    stop: asyncio.Event,
) -> None:
    # Else the first look would stand still while it loads it.
    await asyncio.to_thread(load_journal_probe)
    connections = KeptConnections()
    session = KeptSession(lambda: looker.poll_soon())
    nodes = {node.namenode: node.http for node in namenodes(conf, nameservice)}
    hours = Hours(nodes, fetch)

    async def look() -> ClusterView:
        found, newest = await asyncio.gather(
            look_at(
                conf, nameservice, deadline_seconds=seconds, open_session=session.opened,
                connections=connections,
            ),
            hours.newest(),
        )  # fmt: skip
        return replace(found, hours=newest)

    looker = ClusterPoller(look)
    records = Records(conf, nameservice, session.opened)
    endpoint = Endpoint(
        status=lambda: {
            "role": NAME,
            "nameservice": nameservice,
            "viewers": looker.watchers,
            "looks": looker.looks,
        },
        healthy=lambda: None,
        routes=lambda: _routes(conf, nameservice, at, looker, records, nodes),
        access=access,
        front=False,
    )
    try:
        with binding(keys.WEB_HTTP.name, at.host, at.port):
            await endpoint.start(at.host, at.port)
        await endpoint.prepare()
        SERVICE.ready()
        await stop.wait()
    finally:
        await looker.stop()
        await endpoint.stop()
        await connections.close()
        await session.close()


def _routes(
    conf: Configuration, nameservice: str, at: HostPort, looker: ClusterPoller, records: Records,
    nodes: Mapping[str, HostPort],
) -> "Sequence[aiohttp_web.RouteDef]":  # fmt: skip
    # Loaded here: aiohttp is loaded after the port is open, and no earlier.
    from ha.web.blocks import ask
    from ha.web.site import Site

    hosts = allowed_hosts(at.host, socket.gethostname(), conf.get(keys.WEB_HOSTS))
    return Site(nameservice, looker, records.newest, hosts, ask=partial(ask, nodes)).routes()
