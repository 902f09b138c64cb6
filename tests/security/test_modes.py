"""What daemons write is for their own user, whatever umask they were started with."""

import asyncio
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.local.cluster.ports import HOST, free_ports
from tests.namenode_sim.startup.startup_world import KEYS, write_site

SECONDS = 60.0


def open_to_others(folder: Path) -> dict[str, str]:
    """Return what others may read, write or enter below a folder, itself included."""
    return {
        str(path.relative_to(folder.parent)): f"{stat.S_IMODE(path.stat().st_mode):04o}"
        for path in (folder, *folder.rglob("*"))
        if stat.S_IMODE(path.stat().st_mode) & 0o077
    }


async def daemon(conf_dir: Path, *command: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ha.cli.main", *command, "--conf-dir", str(conf_dir),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, umask=0o022,
    )  # fmt: skip


async def said(process: asyncio.subprocess.Process, event: str) -> Sequence[str]:
    lines = []
    assert process.stdout is not None
    async with asyncio.timeout(SECONDS):
        while line := (await process.stdout.readline()).decode():
            lines.append(line)
            if f'"{event}"' in line:
                return lines
    raise AssertionError("".join(lines))


async def ended(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    await process.communicate()


async def test_no_bit_for_group_or_others_below_any_data_folder(tmp_path: Path) -> None:
    rpc, http, journal_rpc, journal_http = free_ports(4)
    site = {
        **KEYS,
        "dfs.namenode.name.dir": str(tmp_path / "data/name"),
        "dfs.namenode.shared.edits.dir": f"qjournal://{HOST}:{journal_rpc}/ns1",
        "dfs.namenode.rpc-address.ns1.nn1": f"{HOST}:{rpc}",
        "dfs.namenode.http-address.ns1.nn1": f"{HOST}:{http}",
        "dfs.journalnode.edits.dir": str(tmp_path / "data/journal"),
        "dfs.journalnode.rpc-address": f"{HOST}:{journal_rpc}",
        "dfs.journalnode.http-address": f"{HOST}:{journal_http}",
    }
    (tmp_path / "data").mkdir(mode=0o700)
    write_site(tmp_path / "conf", site)
    journal = await daemon(tmp_path / "conf", "journalnode")
    await said(journal, "journalnode.started")
    formatting = await daemon(tmp_path / "conf", "namenode", "--format", "--non-interactive")
    out, _ = await formatting.communicate()
    assert formatting.returncode == 0, out.decode()
    namenode = await daemon(tmp_path / "conf", "namenode")
    try:
        await said(namenode, "namenode.started")
        assert len(list((tmp_path / "data").rglob("*"))) > 10
        assert open_to_others(tmp_path / "data") == {}
    finally:
        await ended(namenode)
        await ended(journal)


async def test_a_folder_that_others_may_enter_is_warned_of(tmp_path: Path) -> None:
    rpc, http = free_ports(2)
    folder = tmp_path / "journal"
    folder.mkdir()
    folder.chmod(0o755)
    write_site(
        tmp_path / "conf",
        {
            "dfs.journalnode.edits.dir": str(folder),
            "dfs.journalnode.rpc-address": f"{HOST}:{rpc}",
            "dfs.journalnode.http-address": f"{HOST}:{http}",
        },
    )
    journal = await daemon(tmp_path / "conf", "journalnode")
    try:
        lines = await said(journal, "storage.open_to_others")
        assert f"chmod 700 {folder}" in lines[-1]
        assert '"0755"' in lines[-1]
    finally:
        await ended(journal)
