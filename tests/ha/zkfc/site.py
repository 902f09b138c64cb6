"""A configuration folder, and ``nnha zkfc`` as a process that reads it."""

import asyncio
import itertools
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from pathlib import Path

from tests import ROOT
from tests.ha.zkfc.zkfc_world import free_port

_names = itertools.count(1)

BLOCKABLE = """
import signal, sys, time
from ha.cli.main import main
signal.signal(signal.SIGUSR1, lambda *_: time.sleep(600))
sys.argv[0] = "nnha"
main()
"""
"""``nnha`` whose event loop stands still from SIGUSR1 on, while its other threads run."""


class Site:
    def __init__(self, directory: Path, zookeeper: str, namenode_port: int = 1) -> None:
        self.nameservice, self.zookeeper = f"cli{next(_names)}", zookeeper
        self.directory = directory / self.nameservice
        self.directory.mkdir()
        self.http_port = free_port()
        ns = self.nameservice
        self.values = {
            "fs.defaultFS": f"hdfs://{ns}",
            "dfs.nameservices": ns,
            f"dfs.ha.namenodes.{ns}": "nn1,nn2",
            "dfs.ha.namenode.id": "nn1",
            f"dfs.namenode.rpc-address.{ns}.nn1": f"127.0.0.1:{namenode_port}",
            f"dfs.namenode.rpc-address.{ns}.nn2": "127.0.0.1:2",
            "dfs.ha.automatic-failover.enabled": "true",
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.ha.zkfc.port": "0",
            f"nnha.zkfc.http-address.{ns}.nn1": f"127.0.0.1:{self.http_port}",
            f"ha.zookeeper.quorum.{ns}": zookeeper,
            "ha.health-monitor.check-interval.ms": "50",
            "nnha.zkfc.session.dir": str(self.directory / "session"),
            "ha.zookeeper.session-timeout.ms": "5000",
        }

    def write(self) -> None:
        rows = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in self.values.items()
        )
        (self.directory / "hdfs-site.xml").write_text(f"<configuration>{rows}</configuration>")
        (self.directory / "core-site.xml").write_text("<configuration></configuration>")

    async def begin(
        self,
        *arguments: str,
        stdin: int = DEVNULL,
        blockable: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> asyncio.subprocess.Process:
        """Start ``nnha zkfc``, by default with stdin at its end."""
        self.write()
        program = ("-c", BLOCKABLE) if blockable else ("-m", "ha.cli.main")
        return await asyncio.create_subprocess_exec(
            sys.executable, *program, "zkfc", "--conf-dir", str(self.directory),
            *arguments,
            stdin=stdin,
            stdout=PIPE,
            stderr=PIPE,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip

    async def run(self, *arguments: str, typed: str | None = None) -> tuple[int | None, str]:
        """Run to the end, with this typed at the prompt: exit code, and all it said."""
        process = await self.begin(*arguments, stdin=DEVNULL if typed is None else PIPE)
        try:
            async with asyncio.timeout(120):
                out, err = await process.communicate(None if typed is None else typed.encode())
        finally:
            if process.returncode is None:
                process.kill()
        return process.returncode, (out + err).decode()
