"""Prometheus of the compose file: that it finds every daemon, and has read the rules."""

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from deploy.local.cluster.processes import wait_until
from tests import needs
from tests.package.image import BASE

IMAGE: Final = "localhost/nnha-prometheus:debian"
URL: Final = "http://127.0.0.1:9090/api/v1"
_DAEMONS: Final = 7
_SECONDS: Final = 60.0
_ENTRY: Final = ["/usr/bin/prometheus", "--config.file=/etc/prometheus/prometheus.yml",
                 "--storage.tsdb.path=/prometheus"]  # fmt: skip
"""As in the image of a hub."""


def make_prometheus(folder: Path) -> bool:
    """Make its image from Debian's program; False where there is none on this machine."""
    program = shutil.which("prometheus", path=needs.SEARCHED)
    if program is None:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(program, folder / "prometheus")
    (folder / "Containerfile").write_text(
        f"FROM {BASE}\nCOPY prometheus /usr/bin/prometheus\nENTRYPOINT {json.dumps(_ENTRY)}\n"
    )
    subprocess.run(
        ["buildah", "bud", "--isolation", "chroot", "-q", "-t", IMAGE, str(folder)],
        check=True, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    return True


def monitoring_facts() -> Mapping[str, int]:
    """Return counts of daemons that Prometheus reaches and of rules; raise LocalClusterError."""
    wait_until(
        lambda: _up() == _DAEMONS,
        what=f"Prometheus to reach {_DAEMONS} daemons", deadline_seconds=_SECONDS,
    )  # fmt: skip
    groups = _asked("rules")["groups"]
    assert isinstance(groups, list)
    return {"daemons_scraped": _up(), "rules_read": sum(len(one["rules"]) for one in groups)}


def _up() -> int:
    with suppress(OSError):
        targets = _asked("targets")["activeTargets"]
        assert isinstance(targets, list)
        return sum(one["health"] == "up" for one in targets)
    return 0


def _asked(what: str) -> Mapping[str, object]:
    with urllib.request.urlopen(f"{URL}/{what}", timeout=5.0) as answer:
        found: Mapping[str, object] = json.load(answer)["data"]
    return found
