"""A real Prometheus watches a real cluster: the worst outage raises its alert."""

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import wait_until
from tests import ROOT, needs

pytestmark = [pytest.mark.cluster, needs.PROMETHEUS.mark]

RULES = ROOT / "deploy" / "monitoring" / "alerts.yml"
DEADLINE_SECONDS = 120.0


def configuration(cluster: Cluster) -> str:
    layout = cluster.layout
    jobs = {
        "nnha-namenode": [layout.url(name) for name in layout.namenodes],
        "nnha-zkfc": [layout.url(f"zkfc-{name}") for name in layout.namenodes],
        "nnha-journalnode": [layout.url(name) for name in layout.journalnodes],
    }
    scraped = [
        {
            "job_name": job,
            "static_configs": [
                {
                    "targets": [url.removeprefix("http://") for url in urls],
                    "labels": {"cluster": "demo"},
                }
            ],
        }
        for job, urls in jobs.items()
    ]
    every = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    return json.dumps({"global": every, "rule_files": ["alerts.yml"], "scrape_configs": scraped})


def hastened(rules: str) -> str:
    """Return the rules, each of which waits for a quarter of its seconds.

    No less: a failover on a busy machine takes some, and is not to raise the alert of no active.
    """
    return re.sub(r"for: (\d+)s", lambda found: f"for: {int(found[1]) * 250}ms", rules)


@contextmanager
def prometheus(folder: Path, cluster: Cluster) -> Iterator[str]:
    """Run Prometheus, and yield its address."""
    folder.mkdir()
    # JSON is YAML, too.
    (folder / "prometheus.yml").write_text(configuration(cluster))
    (folder / "alerts.yml").write_text(hastened(RULES.read_text(encoding="utf-8")))
    (port,) = free_ports(1)
    program = shutil.which("prometheus", path=needs.SEARCHED)
    assert program is not None
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def answer(url: str) -> list[dict[str, object]]:
    try:
        with urllib.request.urlopen(url, timeout=10) as page:
            data = json.load(page)["data"]
    except OSError:
        return []
    found = data.get("alerts", data.get("result"))
    assert isinstance(found, list)
    return found


def firing(base: str) -> set[str]:
    return {
        one["labels"]["alertname"]  # type: ignore[index]
        for one in answer(f"{base}/api/v1/alerts")
        if one["state"] == "firing"
    }


def test_both_namenodes_killed_raise_the_alert_and_a_failover_its_own(tmp_path: Path) -> None:
    with open_cluster(tmp_path / "cluster") as cluster:
        cluster.up()
        active = cluster.wait_for_active()
        standby = next(name for name in cluster.layout.namenodes if name != active)
        with prometheus(tmp_path / "prometheus", cluster) as base:
            # Seen once by each job: what an increase is counted from.
            wait_until(
                lambda: (
                    len(answer(f"{base}/api/v1/query?query=up==1".replace("==", "%3D%3D"))) >= 7
                ),
                what="Prometheus to have seen every daemon",
                deadline_seconds=DEADLINE_SECONDS,
            )
            assert "NnhaFailoverHappened" not in firing(base)
            cluster.kill(active)
            wait_until(
                lambda: "NnhaFailoverHappened" in firing(base),
                what="the alert of the failover",
                deadline_seconds=DEADLINE_SECONDS,
            )
            assert "NnhaNoActive" not in firing(base)
            cluster.kill(standby)
            wait_until(
                lambda: "NnhaNoActive" in firing(base),
                what="the alert that no NameNode is active",
                deadline_seconds=DEADLINE_SECONDS,
            )
        cluster.down()
