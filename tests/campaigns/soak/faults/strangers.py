"""What somebody without a certificate and without the password can do to a cluster under faults."""

import contextlib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError

from deploy.local.cluster.errors import LocalClusterError
from tests.campaigns.soak.faults.hosts import CLIENT_PORT, NAMESERVICE, ZOOKEEPERS, address

SECONDS: Final = 20.0
SCOPE: Final = f"/hadoop-ha/{NAMESERVICE}"
REFUSED: Final = (401, 403)


def let_in(processes: tuple[str, ...], url: Callable[[str], str]) -> list[str]:
    """Return what a stranger was let do; empty if every daemon has refused.

    Raises:
        LocalClusterError: one did not answer, so that nothing is known of it.
    """
    try:
        pages = [f"{process} shows its page to strangers" for process in processes
                 if _code(url(process)) not in REFUSED]  # fmt: skip
        return [*pages, *_znodes()]
    except (OSError, KazooException, KazooTimeoutError) as failure:
        raise LocalClusterError(f"Called as a stranger; {failure!r}") from failure


def _code(url: str) -> int:
    try:
        with urllib.request.urlopen(f"{url}/status", timeout=SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code


def _znodes() -> Iterator[str]:
    where = ",".join(f"{address(host)}:{CLIENT_PORT}" for host in ZOOKEEPERS)
    client = KazooClient(hosts=where, timeout=SECONDS)
    client.start(timeout=SECONDS)
    try:
        for name in ("ActiveStandbyElectorLock", "ActiveBreadCrumb"):
            with contextlib.suppress(NoAuthError):
                client.set(f"{SCOPE}/{name}", b"a stranger")
                yield f"ZooKeeper lets strangers write {name}"
        with contextlib.suppress(NoAuthError):
            client.create(f"{SCOPE}/NnhaPause", b"a stranger")
            yield "ZooKeeper lets strangers pause failover"
    finally:
        client.stop()
        client.close()
