"""The page at / of a daemon: which one it is, its role, and where the whole cluster is shown."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from ha.conf.configuration import Configuration, load_configuration
from ha.daemon.facts import DaemonFacts, own_facts, publish_facts
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.front_page import front_page

STANDBY: Mapping[str, object] = {
    "role": "namenode", "namenode": "nn1", "nameservice": "ns1", "activity": "standby",
}  # fmt: skip
HOSTILE = "<script>alert(1)</script>\u202e"


def configured(folder: Path, *overrides: str) -> Configuration:
    (folder / "hdfs-site.xml").write_text("<configuration></configuration>")
    return load_configuration(folder, overrides, environment={})


def facts(folder: Path, *overrides: str) -> DaemonFacts:
    return DaemonFacts("namenode", configured(folder, *overrides), ("rpc",))


def test_it_says_who_it_is_and_its_role_before_all_else(tmp_path: Path) -> None:
    page = front_page(STANDBY, facts(tmp_path), ("/status", "/metrics", "/elsewhere"))
    text = page.body.decode()
    assert "<h1>nnha NameNode nn1</h1>\n<p>It is <strong>standby</strong>" in text
    assert '<a href="/status">' in text
    assert "/elsewhere" not in text
    assert "nnha status" in text
    assert len(page.body) < 3_000
    assert "'unsafe" not in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize("url", ["https://ops.example/nnha/", "javascript:alert(1)"])
def test_it_leads_to_the_page_of_the_cluster_where_that_is_one(tmp_path: Path, url: str) -> None:
    page = front_page(STANDBY, facts(tmp_path, f"nnha.web.url={url}"), ())
    assert (f'<a href="{url}">' in page.body.decode()) is url.startswith("https")


def test_a_hostile_name_is_shown_as_text() -> None:
    text = front_page({"role": HOSTILE, "namenode": HOSTILE}, None, ()).body.decode()
    assert "<script>" not in text
    assert "\u202e" not in text


async def test_a_daemon_serves_it_without_aiohttp() -> None:
    endpoint = Endpoint(status=lambda: STANDBY, healthy=lambda: None)
    async with asyncio.timeout(30):
        port = await endpoint.start("127.0.0.1", 0)
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{port}/") as answer,
            ):
                assert answer.status == 200
                assert answer.content_type == "text/html"
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert "nnha NameNode nn1" in await answer.text()
            assert not endpoint.prepared
        finally:
            await endpoint.stop()


def test_only_what_a_daemon_publishes_is_its_own(tmp_path: Path) -> None:
    before = own_facts()
    publish_facts("x", configured(tmp_path), registry=CollectorRegistry())
    assert own_facts() is before


def test_the_facts_on_status_have_fixed_keys(tmp_path: Path) -> None:
    told = facts(tmp_path).as_json()
    assert list(told) == [
        "version",
        "commit",
        "pid",
        "started_at",
        "config_hash",
        "insecure",
        "config_keys",
    ]
    assert str(told["started_at"]).endswith("Z")
