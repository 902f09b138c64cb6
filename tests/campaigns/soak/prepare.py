"""``./run soak prepare``: two NameNodes prepare at once, are killed at drawn steps, start again.

Each round has three JournalNodes without a journal and two NameNodes without an image, as real
processes, under what a container's restart policy does: prepare, again until that ends well, then
serve.  There must be one cluster id at the end, or a refusal that says why.
"""

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import click

from deploy.local.cluster.ports import free_ports
from ha.conf.configuration import load_configuration
from ha.daemon.logs import configure_logging
from ha.daemon.process import ExitWith
from journal.errors import JournalError
from journal.links.quorum_call import ask_once
from journal.model import NamespaceInfo
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.startup.prepare.carry_out import Permission, prepare
from namenode_sim.startup.prepare.look import DENIED, journal_address
from namenode_sim.storage.version_file import parse_version
from tests.namenode_sim.startup.startup_world import World, world

STEPS: Final = 6
"""Of a founding with one name directory and three JournalNodes; a bootstrap has one."""
NAMENODES: Final = ("nn1", "nn2")
ROUND_SECONDS: Final = 300.0
WAIT_SECONDS: Final = 5.0
MOST_DELAY_SECONDS: Final = 0.5
MOST_STEP_SECONDS: Final = 0.05


@dataclass(slots=True)
class Told:
    """What the rounds came to."""

    seed: int
    rounds: int = 0
    one_cluster: int = 0
    refused: int = 0
    kills: int = 0
    runs: int = 0
    """Preparations, with those that were killed."""
    reasons: Counter[str] = field(default_factory=Counter)
    """What rounds were refused for, that did not come to one cluster."""
    wrong: list[str] = field(default_factory=list)


@click.command()
@click.option("--count", default=50, show_default=True)
@click.option("--seed", default=None, type=int)
@click.option("--json", "as_json", is_flag=True, help="One JSON object as stdout's last line.")
def main(*, count: int, seed: int | None, as_json: bool) -> None:
    """Play the rounds; exit code 1 where there were two cluster ids, or no reason for none."""
    told = Told(random.SystemRandom().randrange(2**32) if seed is None else seed)
    configure_logging("soak", level="error")
    for number in range(count):
        begun = time.monotonic()
        asyncio.run(play(told, number))
        click.echo(
            f"{number + 1} of {count}: {told.kills} kills in {told.runs} runs so far, "
            f"{told.refused} refused {list(told.reasons)} ({time.monotonic() - begun:.1f} s)",
            err=True,
        )
    shown = {**asdict(told), "well": not told.wrong}
    click.echo(json.dumps(shown) if as_json else json.dumps(shown, indent=2))
    sys.exit(1 if told.wrong else 0)


async def play(told: Told, number: int) -> None:
    rng = random.Random(told.seed * 1_000_003 + number)
    rpc1, rpc2, http1, http2 = free_ports(4)
    keys = {
        "dfs.namenode.rpc-address.ns1.nn1": f"127.0.0.1:{rpc1}",
        "dfs.namenode.rpc-address.ns1.nn2": f"127.0.0.1:{rpc2}",
        "dfs.namenode.http-address.ns1.nn1": f"127.0.0.1:{http1}",
        "dfs.namenode.http-address.ns1.nn2": f"127.0.0.1:{http2}",
    }
    with tempfile.TemporaryDirectory() as name:
        async with world(Path(name), **keys) as at, AsyncExitStack() as running:
            founders = rng.choice([("nn1",), ("nn2",), NAMENODES, NAMENODES])
            lives = [Life(at, one, one in founders, rng, told) for one in NAMENODES]
            await asyncio.gather(*(life.live(running) for life in lives))
            told.rounds += 1
            await judge(at, lives, told, number)


class Life:
    """One NameNode under a restart policy; what became of its last preparation."""

    def __init__(
        self,
        at: World,
        namenode: str,
        may_found: bool,
        rng: random.Random,
        told: Told,
    ) -> None:
        self._at = at
        self._namenode = namenode
        self._may_found = may_found
        self._rng = random.Random(rng.random())
        self._told = told
        self.ready = False
        self.reason = ""

    @property
    def directory(self) -> Path:
        return self._at.folder / self._namenode

    async def live(self, running: AsyncExitStack) -> None:
        """Prepare until that ends well or the round is over, and serve then."""
        kills = [self._rng.randint(1, STEPS) for _ in range(self._rng.choice([0, 1, 1, 2]))]
        end = time.monotonic() + ROUND_SECONDS
        await asyncio.sleep(self._rng.uniform(0.0, MOST_DELAY_SECONDS))
        while time.monotonic() < end and not self.ready:
            code, self.reason = await self._prepare(kills.pop() if kills else 0)
            self._told.runs += 1
            self._told.kills += code == -signal.SIGKILL
            self.ready = code == 0
            if code not in (0, DENIED, -signal.SIGKILL):
                self._told.wrong.append(f"{self._namenode} ended with {code}: {self.reason}")
                return
        if self.ready:
            await self._serve(running)

    async def _prepare(self, kill_before: int) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.campaigns.soak.prepare", str(self._at.conf_dir),
            self._namenode, str(self.directory), str(int(self._may_found)), str(kill_before),
            str(self._rng.random()), stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, told = await process.communicate()
        lines = told.decode().strip().splitlines()
        return process.returncode or 0, lines[-1] if lines else ""

    async def _serve(self, running: AsyncExitStack) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "nnha", "namenode", "--conf-dir", str(self._at.conf_dir),
            *_words(self._namenode, self.directory),
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip

        async def end() -> None:
            if process.returncode is None:
                process.kill()
            await process.wait()

        running.push_async_callback(end)


async def judge(at: World, lives: list[Life], told: Told, number: int) -> None:
    """Expect one cluster id everywhere, or a reason."""
    answers = await ask_once(
        at.nodes.addresses, journal_address(at.place()), lambda one: one.namespace(10.0)
    )
    ids = {one.cluster_id for one in answers.values() if isinstance(one, NamespaceInfo)}
    ids |= {
        parse_version(version.read_bytes()).cluster_id
        for version in (life.directory / "current" / "VERSION" for life in lives)
        if version.exists()
    }
    where = f"round {number} of seed {told.seed}"
    ready = [life for life in lives if life.ready]
    if any(isinstance(one, JournalError) for one in answers.values()):
        told.wrong.append(f"{where}: a JournalNode does not answer: {answers}")
    elif len(ids) > 1:
        told.wrong.append(f"{where}: {sorted(ids)}")
    elif len(ready) == len(lives) and len(ids) == 1:
        told.one_cluster += 1
    elif all(life.ready or "refused: " in life.reason for life in lives):
        told.refused += 1
        told.reasons.update(life.reason for life in lives if not life.ready)
    else:
        told.wrong.append(f"{where}: {[life.reason for life in lives]}")


def _words(namenode: str, directory: Path) -> list[str]:
    return ["-D", f"dfs.ha.namenode.id={namenode}", "-D", f"dfs.namenode.name.dir={directory}"]


def child(words: list[str]) -> int:
    """Prepare once, slowed down by chance, and kill oneself before a step."""
    conf_dir, namenode, directory, may_found, kill_before, draw = words
    rng, left = random.Random(draw), int(kill_before)

    def step(event: str, _: Mapping[str, object]) -> None:
        nonlocal left
        if event == "prepare.waits":
            return
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(rng.uniform(0.0, MOST_STEP_SECONDS))

    configure_logging("prepare", level="error")
    conf = load_configuration(Path(conf_dir), _words(namenode, Path(directory))[1::2])
    place = NameNodeIdentity.from_configuration(conf)
    allowed = Permission(may_found == "1", WAIT_SECONDS)
    try:
        asyncio.run(prepare(conf, place, allowed, step))
    except ExitWith as refusal:
        sys.stderr.write(f"{refusal.message}\n")
        return refusal.code
    return 0


if __name__ == "__main__":
    raise SystemExit(child(sys.argv[1:]))
