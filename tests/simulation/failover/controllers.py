"""A failover controller as these worlds run it: the product's, on models of all that it meets."""

from ha.elector.keeper import KazooKeeper
from ha.notices.board import Board
from ha.zkfc.process.controller import Controller
from ha.zkfc.settings.settings import ZkfcSettings
from ha.zkfc.surroundings.surroundings import Surroundings
from tests.simulation.failover.cluster import ZOOKEEPER


def new_controller(settings: ZkfcSettings, around: Surroundings) -> Controller:
    return Controller(
        settings,
        keeper=lambda post, released: KazooKeeper(
            ZOOKEEPER, post, on_release=released, open_session=around.session
        ),
        board=lambda tell: Board(
            ZOOKEEPER, settings.own.namenode, tell, clock=around.now, open_session=around.session
        ),
        around=around,
    )
