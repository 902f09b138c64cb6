"""`./run soak clients`: the tests of a client in Go, and of its command line, on our cluster.

The client is github.com/colinmarc/hdfs, a program of others that shares no code with Hadoop's.
Its source comes from Go's module proxy.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.signals import orderly_end
from deploy.local.demo.screen import Screen
from deploy.local.workload.hadoop_client import client_argv
from tests.campaigns.bench.report import machine

MODULE: Final = "github.com/colinmarc/hdfs/v2"
VERSION: Final = "v2.4.0"
TESTS: Final = {"go": 145, "bats": 92}
"""What passes at least: tests that a crash keeps from running are not named as failed."""
DATANODES: Final = 3
LIMIT_SECONDS: Final = 1200.0
_TOOLS: Final = {"go": "Go 1.17 or newer", "bats": "Debian's package bats"}
_FILES: Final = (("foo.txt", "134217728"), ("mobydick.txt", "1048576"))
"""What the tests expect below /_test, and in blocks of this size."""
_LINE: Final = re.compile(r"(?P<bad>not )?ok \d+ (?P<name>.*?)(?P<skipped> # skip.*)?")


@dataclass(frozen=True, slots=True)
class Counted:
    """How many tests of a suite passed and were skipped by themselves, and which failed."""

    passed: int
    skipped: int
    failed: tuple[str, ...]

    @property
    def well(self) -> bool:
        return self.passed > 0 and not self.failed


def of_go(lines: Iterable[str]) -> Counted:
    """Count what ``go test -json`` prints; a package that does not compile is one that failed."""
    ends = Counter[str]()
    failed = list[str]()
    for line in lines:
        event = json.loads(line) if line.startswith("{") else {}
        name = event.get("Test") or event.get("Package", "")
        match event.get("Action"):
            case "fail":
                failed.append(name)
            case "pass" | "skip" as end if "Test" in event:
                ends[end] += 1
            case _:
                pass
    return Counted(ends["pass"], ends["skip"], tuple(failed))


def of_bats(lines: Iterable[str]) -> Counted:
    """Count what ``bats --tap`` prints."""
    found = [one for line in lines if (one := _LINE.fullmatch(line.rstrip()))]
    failed = tuple(one["name"] for one in found if one["bad"])
    skipped = sum(one["skipped"] is not None for one in found)
    return Counted(len(found) - len(failed) - skipped, skipped, failed)


def again(first: Counted, second: Counted) -> Counted:
    """Return the first run with the tests that passed in a second one, of those that failed."""
    return Counted(first.passed + second.passed, first.skipped, second.failed)


@click.command("clients")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--seeds", type=int, expose_value=False, help="Accepted by all soaks; not used here.")
@click.option("--first-seed", type=int, expose_value=False, help="The same.")
@click.option("--jobs", type=int, expose_value=False, help="The same.")
def main(*, as_object: bool, directory: Path | None) -> None:
    """Run the Go client's own tests on a local cluster with DataNodes.

    Exit code 0 only if all passed, in Go and of its command line, but for two that its authors
    skip; what failed is run once more.
    """
    screen = Screen.on_stderr_if(as_object)
    began = time.monotonic()
    place = (directory or fresh_directory("soak-clients")).resolve()
    if lacking := [f"{name} ({what})" for name, what in _TOOLS.items() if not shutil.which(name)]:
        raise click.ClickException(f"not on PATH: {', '.join(lacking)}")
    keys = {"dfs.namenode.fs-limits.min-block-size": "0"}
    try:
        source = _source(place)
        with (
            orderly_end(),
            open_cluster(place / "cluster", more_keys=keys, datanodes=DATANODES) as cluster,
        ):
            cluster.up()
            suites = _play(cluster, source, screen)
            cluster.down()
    except LocalClusterError as error:
        raise click.ClickException(str(error)) from error
    well = all(each.well and each.passed >= TESTS[name] for name, each in suites.items())
    screen.summary(
        "all passed" if well else "NOT WELL",
        [
            (name, f"{each.passed} passed, {each.skipped} skipped, failed: {each.failed or 'none'}")
            for name, each in suites.items()
        ],
        well=well,
    )
    if as_object:
        facts: dict[str, object] = {
            name: {"passed": each.passed, "skipped": each.skipped, "failed": list(each.failed)}
            for name, each in suites.items()
        }
        facts |= {"seconds": round(time.monotonic() - began, 1), "machine": machine()}
        click.echo(json.dumps({"well": well, "directory": str(place), **facts}))
    raise SystemExit(0 if well else 1)


def _source(place: Path) -> Path:
    """Return a copy of the client's source that can be built in.  Raise LocalClusterError."""
    place.mkdir(parents=True, exist_ok=True)
    said = _ran(["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"], place)
    source = place / "source"
    shutil.copytree(json.loads(said)["Dir"], source, copy_function=shutil.copyfile)
    for folder in (source, *(one for one in source.rglob("*") if one.is_dir())):
        folder.chmod(0o755)
    _ran(["go", "build", "-o", "hdfs", "./cmd/hdfs"], source)
    return source


def _play(cluster: Cluster, source: Path, screen: Screen) -> Mapping[str, Counted]:
    shell = source / "hadoop-fs"
    words = client_argv(
        cluster.java,
        cluster.conf_dir,
        "org.apache.hadoop.fs.FsShell",
        log_directory=source / "logs",
    )
    shell.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    shell.chmod(0o755)
    _ran([str(shell), "-mkdir", "-p", "/_test"], source)
    _ran([str(shell), "-chmod", "777", "/_test"], source)
    for name, size in _FILES:
        put = (f"-Ddfs.blocksize={size}", "-put", f"testdata/{name}", f"/_test/{name}")
        _ran([str(shell), *put], source)
    environment = os.environ | {"HADOOP_CONF_DIR": str(cluster.conf_dir), "HADOOP_FS": str(shell)}
    screen.title("go test ./...")
    test = ["go", "test", "-json", "-timeout", "900s", "./..."]
    go = of_go(_printed(test, source, environment))
    names = {name.partition("/")[0] for name in go.failed if name.startswith("Test")}
    if names:  # their deadlines are as short as 100 ms, which a busy machine misses
        screen.title(f"once more: {', '.join(names)}")
        only = f"^({'|'.join(names)})$"
        go = again(go, of_go(_printed([*test, "-run", only], source, environment)))
    screen.title("bats cmd/hdfs/test")
    scripts = sorted(map(str, (source / "cmd" / "hdfs" / "test").glob("*.bats")))
    bats = _printed(["bats", "--tap", *scripts], source, environment)
    return {"go": go, "bats": of_bats(bats)}


def _printed(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run a suite; return its lines, which stay in a file, too."""
    log = folder / f"{words[0]}.log"
    with log.open("wb") as sink:
        subprocess.run(
            words, cwd=folder, env=environment, stdout=sink, stderr=sink,
            timeout=LIMIT_SECONDS, check=False,
        )  # fmt: skip
    return log.read_text(errors="replace").splitlines()


def _ran(words: Sequence[str], folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    if done.returncode:
        raise LocalClusterError(f"Ran {shlex.join(words)[:200]}: {done.stderr.strip()[-2000:]}")
    return done.stdout
