"""The files of a local cluster: ports, configuration, and a fencing script that checks."""

import os
import socket
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from deploy.local.cluster import layout as layouts
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.ports import HOST, ensure_free, free_ports, ports_from
from deploy.local.cluster.processes import Supervisor, wait_until
from deploy.local.cluster.site import journalnode_overrides, site_xml, write_conf_dir


def read_site(path: Path) -> dict[str, str]:
    root = ElementTree.parse(path).getroot()
    return {p.findtext("name") or "": p.findtext("value") or "" for p in root.iter("property")}


def test_a_layout_survives_being_saved_and_its_ports_differ(tmp_path: Path) -> None:
    layout = layouts.plan(tmp_path)
    layout.save()
    assert layouts.load(tmp_path) == layout
    assert len(set(layout.all_ports())) == len(layout.all_ports()) == 16


def test_free_ports_differ_and_are_held_while_they_are_looked_for() -> None:
    """Check against a repetition: one cluster of fifteen ports in 120 had one of them twice."""
    assert len(set(free_ports(400))) == 400


def test_a_moved_directory_keeps_its_cluster(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    layouts.plan(old).save()
    old.rename(new)
    moved = layouts.load(new)
    assert moved is not None
    assert moved.name_dir("nn1") == new / "data" / "nn1" / "name"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"zookeeper": 1, "journalnodes": 3}'])
def test_a_damaged_cluster_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(LocalClusterError, match=r"cluster\.json.*damaged"):
        layouts.load(tmp_path)


def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LocalClusterError, match=f"taken: {port}"):
            ensure_free((port,))


def test_a_base_port_gives_the_ports_from_there_on() -> None:
    (base,) = free_ports(1)
    assert ports_from(base, 1) == (base,)


def test_the_files_hold_an_ha_nameservice_and_no_tuned_client_keys(tmp_path: Path) -> None:
    layout = layouts.plan(tmp_path)
    write_conf_dir(layout)
    core = read_site(layout.conf_dir / "core-site.xml")
    hdfs = read_site(layout.conf_dir / "hdfs-site.xml")
    assert core["fs.defaultFS"] == "hdfs://ns1"
    assert core["ha.zookeeper.quorum"] == f"{HOST}:{layout.zookeeper}"
    assert hdfs["dfs.ha.namenodes.ns1"] == "nn1,nn2"
    nodes = ";".join(f"{HOST}:{layout.journalnodes[name].rpc}" for name in ("jn1", "jn2", "jn3"))
    assert hdfs["dfs.namenode.shared.edits.dir"] == f"qjournal://{nodes}/ns1"
    assert hdfs["dfs.namenode.rpc-address.ns1.nn2"] == f"{HOST}:{layout.namenodes['nn2'].rpc}"
    assert [key for key in {**core, **hdfs} if ".client." in key or key.startswith("ipc.")] == [
        "dfs.client.failover.proxy.provider.ns1"
    ]
    own = journalnode_overrides(layout, "jn2")
    assert own["dfs.journalnode.edits.dir"] == str(tmp_path / "data" / "jn2")


def test_values_are_escaped() -> None:
    root = ElementTree.fromstring(site_xml({"a&b": "<c> & d"}))
    assert (root.findtext("property/name"), root.findtext("property/value")) == ("a&b", "<c> & d")


SLEEPER = ("-c", "import time; time.sleep(600)")


def fence(layout: layouts.Layout, victim: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [layout.conf_dir / "fence-namenode.sh"],
        env={**os.environ, "target_namenodeid": victim},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_fencing_kills_the_namenode_it_is_told_to(tmp_path: Path) -> None:
    layout = layouts.plan(tmp_path)
    write_conf_dir(layout)
    with Supervisor(tmp_path) as supervisor:
        for name in ("nn1", "nn2"):
            own_id = f"dfs.ha.namenode.id={name}"
            supervisor.start(name, [sys.executable, *SLEEPER, "namenode", "-D", own_id])
        told = fence(layout, "nn1")
        assert (told.returncode, told.stderr) == (0, "")
        assert "killed process" in told.stdout
        assert supervisor.processes["nn1"].wait(5) == -9
        assert supervisor.processes["nn2"].running
        assert "has ended already" in fence(layout, "nn1").stdout


def test_fencing_spares_a_stranger_who_got_the_old_pid(tmp_path: Path) -> None:
    layout = layouts.plan(tmp_path)
    write_conf_dir(layout)
    with Supervisor(tmp_path) as supervisor:
        own_id = "dfs.ha.namenode.id=nn1"
        zkfc = supervisor.start("nn1", [sys.executable, *SLEEPER, "zkfc", "-D", own_id])
        told = fence(layout, "nn1")
        assert told.returncode == 0
        assert zkfc.running


def test_fencing_fails_when_it_cannot_know_the_victim(tmp_path: Path) -> None:
    layout = layouts.plan(tmp_path)
    write_conf_dir(layout)
    told = fence(layout, "nn1")
    assert told.returncode == 1
    assert "cannot fence nn1" in told.stderr


def test_fencing_kills_a_frozen_namenode_too(tmp_path: Path) -> None:
    layout = layouts.plan(tmp_path)
    write_conf_dir(layout)
    with Supervisor(tmp_path) as supervisor:
        own_id = "dfs.ha.namenode.id=nn1"
        frozen = supervisor.start("nn1", [sys.executable, *SLEEPER, "namenode", "-D", own_id])
        wait_until(
            lambda: b"namenode" in Path(f"/proc/{frozen.pid}/cmdline").read_bytes(),
            what="the victim to run",
            deadline_seconds=5,
        )
        frozen.freeze()
        assert fence(layout, "nn1").returncode == 0
        assert frozen.wait(5) == -9
