"""A single NameNode becomes a highly available pair, as docs/migration.md says, end to end."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.local.cluster import site
from deploy.local.cluster.cluster import ZOOKEEPER, Cluster, open_cluster, zkfc_of
from deploy.local.cluster.layout import JOURNALNODES
from journal.frame import HEADER_BYTES, read_header
from namenode_sim.edits.codec import decode_all
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.inode import INodeDirectory, INodeFile
from namenode_sim.namespace.namespace import Namespace
from tests.local_services import fs_shell
from tests.namenode_sim.image.image_world import real
from tests.namenode_sim.namespace.dump import dump_tree
from tests.namenode_sim.startup.startup_world import copy_dir, in_use

pytestmark = pytest.mark.cluster

STEP_SECONDS = 60.0


def of_hadoop(directory: Path) -> Namespace:
    """Copy a name directory of Hadoop 2.6 that was in use; return what it holds."""
    copy_dir(real("name-dir/VERSION").parent, directory / "current")
    namespace = load_image(directory / "current" / f"fsimage_{26:019d}")
    data = (directory / "current" / f"edits_inprogress_{27:019d}").read_bytes()
    for txid, op in decode_all(data, read_header(data), start=HEADER_BYTES):
        namespace.apply(txid, op)
    return namespace


def of_ours(directory: Path) -> Namespace:
    """Make a directory with edits of many kinds behind its image, the last segment open."""
    return in_use(directory)


def run(cluster: Cluster, namenode: str, *arguments: str) -> str:
    program, *rest = arguments
    command = cluster.command(program, *rest, "-D", f"dfs.ha.namenode.id={namenode}")
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=STEP_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def listing(cluster: Cluster) -> list[str]:
    """Return the columns of Hadoop's own shell without its padding, which a new path may change."""
    shell = fs_shell(cluster.conf_dir, "-ls", "-R", "/", deadline_seconds=STEP_SECONDS)
    assert shell.returncode == 0, shell.stderr
    return [" ".join(line.split()) for line in shell.stdout.splitlines()]


def shown_paths(lines: list[str]) -> list[str]:
    return sorted(line.split(None, 7)[7].split(" -> ")[0] for line in lines)


def sizes(lines: list[str]) -> dict[str, int]:
    return {line.split(None, 7)[7]: int(line.split()[4]) for line in lines if line[0] == "-"}


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(of_hadoop, id="of Hadoop 2.6"),
        pytest.param(of_ours, id="of ours", marks=pytest.mark.long),
    ],
)
def test_nothing_of_the_old_namespace_is_missing(
    tmp_path: Path, make: Callable[[Path], Namespace]
) -> None:
    with open_cluster(tmp_path / "cluster") as cluster:
        # The old namespace has files with content, which is not read here: there are no DataNodes.
        site.write_conf_dir(cluster.layout, {"dfs.namenode.safemode.threshold-pct": "0"})
        old = make(cluster.layout.name_dir("nn1"))
        kept = tmp_path / "kept"
        shutil.copytree(cluster.layout.name_dir("nn1"), kept)

        cluster.start(ZOOKEEPER)
        run(cluster, "nn1", "zkfc", "-formatZK", "-nonInteractive")
        for name in JOURNALNODES:
            cluster.start(name)
        said = run(cluster, "nn1", "namenode", "-initializeSharedEdits", "-nonInteractive")
        assert f"to {old.last_applied} in" in said
        cluster.start("nn1")
        said = run(cluster, "nn2", "namenode", "-bootstrapStandby", "-nonInteractive")
        assert "from nn1" in said
        cluster.start("nn2")
        for name in ("nn1", "nn2"):
            cluster.start(zkfc_of(name))

        first = cluster.wait_for_active()
        second = "nn2" if first == "nn1" else "nn1"
        cluster.wait_for_ready_standby(second)
        cluster.wait_for_candidate(second)
        before = listing(cluster)
        assert_all_there(old, before)
        made = fs_shell(cluster.conf_dir, "-mkdir", "/new", deadline_seconds=STEP_SECONDS)
        assert made.returncode == 0, made.stderr
        cluster.kill(first)
        assert cluster.wait_for_active() == second
        after = listing(cluster)
        assert [line for line in after if not line.endswith(" /new")] == before
        assert shown_paths(after) == sorted([*shown_paths(before), "/new"])
        cluster.down()
    # The way back: what was there is there still, but for the name of the segment that was open.
    left = {path.name: path.read_bytes() for path in (kept / "current").iterdir()}
    now = cluster.layout.name_dir("nn1") / "current"
    for name, content in left.items():
        if "inprogress" not in name:
            assert (now / name).read_bytes() == content


def assert_all_there(old: Namespace, lines: list[str]) -> None:
    expected = sorted(path for path, _ in dump_tree(old.tree.root) if path != "/")
    assert shown_paths(lines) == expected
    files = {
        path: old.tree.file(path).length()
        for path in expected
        if isinstance(old.tree.node(path), INodeFile)
    }
    shown = sizes(lines)
    assert {path: shown[path] for path in files} == files
    for line in lines:
        path = line.split(None, 7)[7].split(" -> ")[0]
        node = old.tree.node(path)
        assert line.split()[2:4] == [node.user, node.group], line
        assert (line[0] == "d") == isinstance(node, INodeDirectory)
