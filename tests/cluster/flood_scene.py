"""A failover while a stranger floods every port, and what is answered at that time."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping

from deploy.local.cluster.cluster import Cluster
from deploy.local.cluster.processes import http_get, wait_until
from tests.security.floods import flooding

SECONDS = 60.0
A_SECOND = 600


def http_ports(cluster: Cluster) -> dict[str, int]:
    layout = cluster.layout
    return {
        **{name: ports.http for name, ports in layout.namenodes.items()},
        **{f"zkfc-{name}": ports.zkfc_http for name, ports in layout.namenodes.items()},
        **{name: ports.http for name, ports in layout.journalnodes.items()},
    }


def rpc_ports(cluster: Cluster) -> Iterator[int]:
    for ports in cluster.layout.namenodes.values():
        yield from (ports.rpc, ports.zkfc_rpc)


def grpc_ports(cluster: Cluster) -> Iterator[int]:
    yield from (ports.rpc for ports in cluster.layout.journalnodes.values())


def lane_ports(cluster: Cluster) -> Iterator[int]:
    for name in cluster.layout.journalnodes:
        shown = http_get(f"{cluster.layout.url(name)}/status", deadline_seconds=SECONDS)
        assert shown is not None
        yield int(json.loads(shown[1])["write_lane_address"].rpartition(":")[2])


def doors(cluster: Cluster, name: str) -> dict[str, float]:
    """Return how many connections each door of a daemon has let give way."""
    port = http_ports(cluster)[name]
    page = http_get(f"http://127.0.0.1:{port}/metrics", deadline_seconds=SECONDS)
    assert page is not None
    found: dict[str, float] = {}
    for door, count in re.findall(
        r'^nnha_door_gave_way_total\{door="(\w+)",.*\} (.*)$', page[1].decode(), re.MULTILINE
    ):
        found[door] = found.get(door, 0.0) + float(count)
    return found


def fails_over_in_a_flood(
    cluster: Cluster, targets: list[tuple[int, bytes]], full: Mapping[str, str]
) -> None:
    """Flood these ports until these doors of these daemons are full, then kill the active.

    All daemons answer their probes, and files are written and read, before and after.
    """
    before = cluster.wait_for_active()
    after = next(name for name in cluster.layout.namenodes if name != before)
    cluster.wait_for_ready_standby(after)
    with flooding(targets, a_second=A_SECOND):
        for daemon, door in full.items():
            wait_until(
                lambda daemon=daemon, door=door: doors(cluster, daemon).get(door, 0) > 0,  # type: ignore[misc]
                what=f"strangers at the door {door} of {daemon}",
                deadline_seconds=SECONDS,
            )
        _all_answer(cluster)
        _written(cluster, "/during-the-flood")
        cluster.kill(before)
        assert cluster.wait_for_active(deadline_seconds=SECONDS) == after
        _written(cluster, "/after-the-failover")
        _all_answer(cluster, but=before)
    for name in set(cluster.parts) - {before}:
        assert cluster.process(name).running, name
    cluster.heal()


def _all_answer(cluster: Cluster, but: str = "") -> None:
    for name, port in http_ports(cluster).items():
        if name != but:
            found = http_get(f"http://127.0.0.1:{port}/livez", deadline_seconds=5.0)
            assert found is not None, name
            assert found[0] == 200


def _written(cluster: Cluster, path: str) -> None:
    if not cluster.datanodes:
        _fs(cluster, "mkdir", path)
        return
    _fs(cluster, "put", "-", path, piped=b"bytes")
    assert _fs(cluster, "cat", path) == b"bytes"


def _fs(cluster: Cluster, *words: str, piped: bytes = b"") -> bytes:
    command = [sys.executable, "-m", "ha.cli.main", "fs", *words, "--conf-dir"]
    done = subprocess.run(
        [*command, str(cluster.conf_dir)], input=piped, capture_output=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
