"""``nnha datanode``: run a DataNode in the foreground."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from datanode.process.node import DataNode
from datanode.process.operator_calls import OperatorCalls
from datanode.process.settings import LIVE_KEYS, read_settings, refuse_hidden, refuse_unlockable
from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.hazards import Daemon
from ha.conf.own_user import own_user
from ha.console.log_options import log_options
from ha.console.options import configuration
from ha.daemon.end_code import end_code
from ha.daemon.exposure import check_exposure
from ha.daemon.facts import publish_facts
from ha.daemon.logs import LogOptions, configure_logging
from ha.daemon.process import ExitWith, run_daemon
from ha.daemon.start_check import check_start
from ha.rpc.protocol import Method
from ha.security.access_control import AccessControl
from ha.service.reconfiguration import Reconfiguration, check_is

if TYPE_CHECKING:
    from aiohttp import web


@click.command()
@configuration
@log_options
def datanode(conf_dir: Path | None, overrides: tuple[str, ...], log_as: LogOptions) -> None:
    """Keep blocks for NameNodes until SIGTERM."""
    configure_logging("datanode", level=log_as.level, form=log_as.form)

    async def main(stop: asyncio.Event) -> None:
        os.umask(0o077)
        try:
            conf = load_configuration(conf_dir, overrides)
            check_start(conf, Daemon.DATANODE)
            settings = read_settings(conf)
            refuse_hidden(settings)
            refuse_unlockable(settings)
            access = check_exposure(conf, Daemon.DATANODE, settings.doors())
            publish_facts("datanode", conf, open_to=("data", "rpc", "http"))
        except ConfigurationError as failure:
            raise ExitWith(end_code(failure), str(failure)) from failure
        node = DataNode(settings, access, partial(_operators, conf), partial(_routes, conf, access))
        await node.run(stop)

    sys.exit(run_daemon("datanode", main, busy=True))


def _operators(conf: Configuration, node: DataNode) -> Mapping[str, Method]:
    changes = Reconfiguration(conf, LIVE_KEYS, lambda found: node.use(read_settings(found)))
    return OperatorCalls(node, changes, check_is(own_user())).methods()


def _routes(conf: Configuration, access: AccessControl | None) -> "Sequence[web.RouteDef]":
    from datanode.webhdfs.route import data_routes  # it loads aiohttp

    return data_routes(conf, access)
