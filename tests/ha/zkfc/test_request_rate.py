"""How often one caller may ask for a change of roles, and what is never refused."""

import asyncio
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from ha.conf.configuration import load_configuration
from ha.rpc.protocol import Call
from ha.service.errors import ServiceFailed
from ha.zkfc.process.server import MOST_REMEMBERED, WINDOW_SECONDS, RequestRate, ZkfcFace
from ha.zkfc.record.takeover_record import HandOverRequest
from ha.zkfc.settings.settings import ZkfcSettings, zkfc_settings


def test_so_many_in_any_minute() -> None:
    rate = RequestRate(3)
    assert [rate.admit("ann", "cede", at) for at in (0.0, 10.0, 20.0)] == [0.0] * 3
    assert rate.admit("ann", "cede", 30.0) == 30.0
    assert rate.admit("ann", "failover", 30.0) == 0.0, "each kind by itself"
    assert rate.admit("bob", "cede", 30.0) == 0.0
    assert rate.admit("ann", "cede", WINDOW_SECONDS) == 0.0
    assert rate.admit("ann", "cede", WINDOW_SECONDS + 1) == 9.0, "what was refused is not counted"


def test_without_a_limit_all_may() -> None:
    rate = RequestRate(0)
    assert {rate.admit("ann", "cede", 1.0) for _ in range(1000)} == {0.0}


def test_few_callers_are_remembered() -> None:
    rate = RequestRate(1)
    assert rate.admit("first", "cede", 0.0) == 0.0
    for number in range(MOST_REMEMBERED):
        assert rate.admit(f"user{number}", "cede", 1.0) == 0.0
    assert rate.admit("first", "cede", 2.0) == 0.0, "forgotten"
    assert rate.admit(f"user{MOST_REMEMBERED - 1}", "cede", 2.0) > 0


def settings(folder: Path) -> ZkfcSettings:
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / name).write_text("<configuration></configuration>")
    given = {
        "dfs.nameservices": "ns", "dfs.ha.namenodes.ns": "nn1,nn2", "dfs.ha.namenode.id": "nn1",
        "dfs.namenode.rpc-address.ns.nn1": "127.0.0.1:1",
        "dfs.namenode.rpc-address.ns.nn2": "127.0.0.1:2",
        "ha.zookeeper.quorum": "127.0.0.1:3",
    }  # fmt: skip
    return zkfc_settings(load_configuration(folder, [f"{k}={v}" for k, v in given.items()]))


async def test_the_eleventh_in_a_minute_is_refused_and_coming_back_never(tmp_path: Path) -> None:
    done: list[str] = []

    async def cede(seconds: float, _: bytes) -> None:
        done.append(f"cede {seconds:g}")

    async def hand_over(asked: HandOverRequest) -> None:
        done.append(asked.user)
        await asyncio.sleep(0)

    here = settings(tmp_path)
    assert here.max_requests_a_minute == 10
    face = ZkfcFace(here, cede=cede, hand_over=hand_over)
    call = Call("ZKFCProtocol", "x", b"", 0, 0, here.user, None, "127.0.0.1")
    for _ in range(10):
        await face.cede_active(1000, call)
        await face.graceful_failover(call)
    before = refused("requests_of_identity")
    with pytest.raises(ServiceFailed, match=r"cedeActive 10 times within a minute.* try again in "):
        await face.cede_active(1000, call)
    with pytest.raises(ServiceFailed, match="gracefulFailover 10 times"):
        await face.graceful_failover(call)
    assert refused("requests_of_identity") == before + 2
    await face.cede_active(0, call)
    assert done == ["cede 1", here.user] * 10 + ["cede 0"]


def refused(limit: str) -> float:
    return REGISTRY.get_sample_value("nnha_zkfc_limits_met_total", {"limit": limit}) or 0.0
