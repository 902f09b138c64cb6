"""A pair under names of /etc/hosts, first with a name server that refuses, then a silent one.

Runs inside ``tests.silent_names.among_names``, and prints seconds as one JSON object.
"""

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from deploy.local.cluster.cluster import Cluster, open_cluster, zkfc_of
from deploy.local.cluster.layout import NAMESERVICE
from deploy.local.cluster.processes import wait_until
from tests.silent_names import SINK

HOSTS = ("nn-a", "nn-b", "jn-a", "jn-b", "jn-c", "zk-a")
ROUNDS: Final = 2
MOST_ROUNDS: Final = 8
FACTOR: Final = 1.2
NOISE_SECONDS: Final = 0.5
"""Of a busy machine; what a resolver costs is 5 s and more."""
OTHER = {"nn1": "nn2", "nn2": "nn1"}


def named(cluster: Cluster) -> dict[str, str]:
    """Return keys that name every process by a name of /etc/hosts."""
    layout = cluster.layout
    nodes = ";".join(
        f"jn-{letter}:{one.rpc}"
        for letter, one in zip("abc", layout.journalnodes.values(), strict=True)
    )
    keys = {
        "dfs.namenode.shared.edits.dir": f"qjournal://{nodes}/{NAMESERVICE}",
        "ha.zookeeper.quorum": f"zk-a:{layout.zookeeper}",
        "dfs.ha.fencing.methods": "journal-epoch",
        "nnha.security.mode": "insecure-i-know",
    }
    for name, host in (("nn1", "nn-a"), ("nn2", "nn-b")):
        ports, at = layout.namenodes[name], f"{NAMESERVICE}.{name}"
        keys |= {
            f"dfs.namenode.rpc-address.{at}": f"{host}:{ports.rpc}",
            f"dfs.namenode.http-address.{at}": f"{host}:{ports.http}",
            f"nnha.zkfc.http-address.{at}": f"{host}:{ports.zkfc_http}",
        }
    return keys


def failover(cluster: Cluster) -> float:
    """Kill the active; return how long the other one took, with both well again."""
    old = cluster.wait_for_active()
    new = OTHER[old]
    begun = time.monotonic()
    cluster.kill(old)
    wait_until(
        lambda: cluster.active_namenodes() == [new], what=f"{new} active", deadline_seconds=60
    )
    took = time.monotonic() - begun
    cluster.start(old)
    cluster.wait_for_ready_standby(old)
    cluster.wait_for_candidate(old)
    return took


def election(cluster: Cluster) -> float:
    """Start the standby's controller again; return how long it took into the election."""
    standby = OTHER[cluster.wait_for_active()]
    cluster.kill(zkfc_of(standby))
    begun = time.monotonic()
    cluster.start(zkfc_of(standby))
    cluster.wait_for_candidate(standby)
    return time.monotonic() - begun


def most(before: float) -> float:
    """Return the seconds that a silent name server may lead to, by those with one that refuses."""
    return FACTOR * before + NOISE_SECONDS


def shortest(
    measure: Callable[[Cluster], float], cluster: Cluster, enough: float = math.inf
) -> float:
    """Return the shortest time of some rounds, of more while none was short enough.

    A start on a busy machine takes a second longer now and then; a resolver that is waited for
    costs its seconds in each round.
    """
    found = [measure(cluster) for _ in range(ROUNDS)]
    while min(found) > enough and len(found) < MOST_ROUNDS:
        found.append(measure(cluster))
    return min(found)


def main(folder: Path) -> None:
    cluster = open_cluster(folder, datanodes=0)
    cluster.more_keys = named(cluster)
    found: dict[str, Any] = {}
    with cluster:
        cluster.up()
        found["failover, refusing"] = shortest(failover, cluster)
        found["election, refusing"] = shortest(election, cluster)
        with subprocess.Popen(SINK, stdout=subprocess.PIPE) as sink:
            assert sink.stdout is not None
            sink.stdout.readline()
            found["failover, silent"] = shortest(
                failover, cluster, most(found["failover, refusing"])
            )
            site = cluster.conf_dir / "hdfs-site.xml"
            known = f"zk-a:{cluster.layout.zookeeper}"
            site.write_text(site.read_text().replace(known, f"{known},zk-gone:2181"))
            found["election, silent"] = shortest(
                election, cluster, most(found["election, refusing"])
            )
            sink.kill()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
