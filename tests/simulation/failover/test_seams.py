"""What takes the place of the product's doors can be asked all that the product asks of them."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from ha.elector.zookeeper.client import Session
from ha.rpc.client import RpcConnection
from tests.simulation.failover.nemesis import Swarm
from tests.simulation.failover.rpc_seam import SimConnection, Switchboard
from tests.simulation.failover.world import run
from tests.simulation.failover.zk_session import ModelSession

PAIRS = [
    (RpcConnection.open, Switchboard.open),
    (RpcConnection.call, SimConnection.call),
    (RpcConnection.wait_closed, SimConnection.wait_closed),
    (RpcConnection.close, SimConnection.close),
    *(
        (getattr(Session, name), getattr(ModelSession, name))
        for name in ("create", "write", "read", "look", "delete", "open", "close")
    ),
]


@pytest.mark.parametrize(("real", "model"), PAIRS, ids=lambda one: one.__qualname__)
def test_a_model_takes_what_the_product_gives(
    real: Callable[..., Any], model: Callable[..., Any]
) -> None:
    """``context`` was missing once: every hand-over of an operator ended in a TypeError unseen."""
    wanted = [one for one in inspect.signature(real).parameters if one not in {"self", "cls"}]
    assert set(wanted) <= set(inspect.signature(model).parameters)


def test_operators_hand_over_where_nothing_is_wrong() -> None:
    orderly = next(seed for seed in range(1, 100) if Swarm.drawn(seed).orderly)
    lines = run(orderly, keep_trace=True).lines
    asked = [line for line in lines if "oper wants" in line]
    done = [line for line in lines if "says that it is active" in line]
    assert len(asked) == len(done) > 2
