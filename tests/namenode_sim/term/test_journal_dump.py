"""``nnha journal dump`` shows what a NameNode has written, through the whole command line."""

import asyncio
import json
from pathlib import Path

from click.testing import CliRunner, Result

from ha.cli.main import main
from tests.journal.writer.journal_cluster import JOURNAL, Nodes, formatted_nodes
from tests.namenode_sim.term.test_in_progress_tail import MIB, edit, namenode


async def dump(nodes: Nodes, folder: Path, *arguments: str) -> Result:
    conf = folder / "conf"
    conf.mkdir(exist_ok=True)
    hosts = ";".join(f"{host}:{port}" for host, port in nodes.addresses)
    keys = {
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1",
        "dfs.namenode.rpc-address.ns1.nn1": "127.0.0.1:8020",
        "dfs.namenode.shared.edits.dir.ns1": f"qjournal://{hosts}/{JOURNAL}",
    }
    given = [word for key, value in keys.items() for word in ("-D", f"{key}={value}")]
    (conf / "core-site.xml").write_text("<configuration/>")
    command = ["journal", "dump", "--conf-dir", str(conf), *given, *arguments]
    return await asyncio.to_thread(CliRunner().invoke, main, command)


def test_a_configuration_that_cannot_be_used_is_wrong_usage(tmp_path: Path) -> None:
    words = ["journal", "dump", "--conf-dir", str(tmp_path)]
    assert CliRunner().invoke(main, words).exit_code == 2


async def test_edits_are_shown_as_oev_shows_them(tmp_path: Path) -> None:
    async with (
        formatted_nodes(tmp_path, edits_cache_bytes=MIB) as nodes,
        namenode(nodes, "nn1") as active,
    ):
        await active.become_active()
        last = await edit(active, 5)
        nothing = await dump(nodes, tmp_path)
        assert nothing.exit_code == 3, nothing.output
        assert "no edit from 1 on in a closed segment; see --in-progress" in nothing.output
        reverse = await dump(nodes, tmp_path, "--from", "2", "--to", "1")
        assert (reverse.exit_code, "--to 1 comes before --from 2" in reverse.output) == (2, True)
        target = tmp_path / "out"
        opened = await dump(nodes, tmp_path, "--in-progress", "-o", str(target))
        assert opened.exit_code == 0, opened.output
        lines = [json.loads(line) for line in target.read_text().splitlines()]
        assert [line["txid"] for line in lines if "txid" in line] == list(range(1, last + 1))
        await active.become_standby()
        some = await dump(
            nodes, tmp_path, "--from", "2", "--to", "4", "-p", "xml", "-o", str(target)
        )
        assert some.exit_code == 0, some.output
        assert target.read_text().count("<OPCODE>OP_DELETE</OPCODE>") == 3
        assert (await dump(nodes, tmp_path, "--from", "900")).exit_code == 3
        await nodes.stop(0, 1)
        assert (await dump(nodes, tmp_path)).exit_code == 6
