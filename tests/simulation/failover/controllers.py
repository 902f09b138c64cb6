"""A failover controller as these worlds run it: the product's, on models of all that it meets."""

from collections.abc import Callable

from ha.elector.keeper import KazooKeeper
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.notices.board import Board
from ha.zkfc.process.controller import Controller
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.surroundings import Surroundings
from tests.simulation.failover.cluster import ZOOKEEPER


def new_controller(
    settings: ZkfcSettings,
    around: Surroundings,
    ticket: SessionTicket | None = None,
    keep_ticket: Callable[[SessionTicket | None], None] = lambda _: None,
) -> Controller:
    return Controller(
        settings,
        keeper=lambda post, released: KazooKeeper(
            ZOOKEEPER,
            post,
            on_release=released,
            ticket=ticket,
            keep_ticket=keep_ticket,
            open_session=around.session,
        ),
        board=lambda tell: Board(
            ZOOKEEPER, settings.own.namenode, tell, clock=around.now, open_session=around.session
        ),
        around=around,
    )
