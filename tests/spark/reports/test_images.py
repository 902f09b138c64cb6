"""From images and edits to a report, by the commands, against the trees that were loaded."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import spark.reports
from ha.cli.main import main
from journal.model import TxId
from namenode_sim.image.reader import load_image
from namenode_sim.namespace.inode import (
    INode,
    INodeDirectory,
    INodeFile,
    INodeSymlink,
    full_path,
    subtree,
)
from tests.ha.cli.schema import faults
from tests.worlds.large.edits import edits_on, write_segments
from tests.worlds.large.images import LAST_TXID, write_big_image
from tests.worlds.large.shape import Shape

SHAPE = Shape(6000)
OPS = 2000
SCHEMA = Path(spark.reports.__file__).parent / "schemas" / "report.json"


def run(*words: str | Path) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[INode], list[INode], Any]:
    folder = tmp_path_factory.mktemp("day")
    for name in ("before", "edits"):
        (folder / name).mkdir()
    before = write_big_image(folder / "before", SHAPE)
    edits = edits_on(SHAPE, OPS)
    write_segments(folder / "edits", edits, first=TxId(LAST_TXID + 1), segments=1, count=OPS)
    merge = ("checkpoint", "merge", "--engine", "local", "--image", before)
    run(*merge, "--edits", folder / "edits", "--out", folder / "after", "--json")
    (after,) = (path for path in (folder / "after").iterdir() if path.suffix != ".md5")
    for image in (before, after):
        run("namespace", "export", image, "--parquet", image.parent / "parquet")
    words = ("--since", before.parent / "parquet", "--top", "9999", "-o", "json")
    report = json.loads(run("namespace", "report", after.parent / "parquet", *words))
    assert faults(SCHEMA, report) == []
    trees = (load_image(image).tree.root for image in (before, after))
    first, second = ([tree, *subtree(tree)] for tree in trees)
    return list(dict.fromkeys(first)), list(dict.fromkeys(second)), report["sections"]


def files(inodes: list[INode]) -> dict[int, INodeFile]:
    return {inode.id: inode for inode in inodes if isinstance(inode, INodeFile)}


def test_usage_is_that_of_the_tree(world: tuple[list[INode], list[INode], Any]) -> None:
    _, inodes, sections = world
    found = files(inodes).values()
    by_user: Counter[str] = Counter()
    for file in found:
        by_user[file.user] += file.length()
    users = {user["name"]: user["bytes"] for user in sections["usage"]["users"]}
    assert {name: held for name, held in users.items() if held} == {**+by_user}
    total = sections["usage"]["total"]
    assert total["files"] == len(found)
    assert total["symlinks"] == sum(isinstance(inode, INodeSymlink) for inode in inodes)
    assert total["blocks"] == sum(len(file.blocks) for file in found)
    assert len([file for file in found if not file.ec_policy_id]) == len(found)
    assert total["disk_bytes"] == sum(file.length() * file.replication for file in found)
    assert sections["usage"]["under_construction"] == sum(
        file.under_construction is not None for file in found
    )


def test_ages_are_those_of_the_tree(world: tuple[list[INode], list[INode], Any]) -> None:
    _, inodes, sections = world
    as_of = sections["age"]["as_of_ms"]
    for bucket in sections["age"]["used"]:
        inside = [
            file
            for file in files(inodes).values()
            if bucket["at_least"]
            <= max((as_of - max(file.mtime, file.atime)) // 86_400_000, 0)
            < (bucket["below"] or 1 << 40)
        ]
        assert bucket["files"] == len(inside)


def test_directories_are_those_of_the_tree(world: tuple[list[INode], list[INode], Any]) -> None:
    _, inodes, sections = world
    directories = {inode.id: inode for inode in inodes if isinstance(inode, INodeDirectory)}
    entries = {
        one["path"]: one["files"] + one["subdirectories"]
        for one in sections["largest"]["directories"]
    }
    assert entries == {
        full_path(one): len(one.children) for one in directories.values() if one.children
    }
    for one in sections["directories"]["by_subtree_bytes"][:200]:
        below = [node for node in subtree(directories[one["id"]]) if isinstance(node, INodeFile)]
        assert one["subtree_bytes"] == sum(file.length() for file in below), one["path"]


def test_quotas_are_those_of_the_tree(world: tuple[list[INode], list[INode], Any]) -> None:
    _, inodes, sections = world
    limited = [
        inode
        for inode in inodes
        if isinstance(inode, INodeDirectory)
        and inode.parent is not None
        and (inode.quotas.namespace >= 0 or inode.quotas.space >= 0)
    ]
    assert sections["quota"]["count"] == len(limited) > 0
    found = {quota["path"]: quota for quota in sections["quota"]["fullest"]}
    for directory in limited:
        own = list(dict.fromkeys([directory, *subtree(directory)]))
        quota = found[full_path(directory)]
        assert quota["names_used"] == len(own)
        assert quota["space_used"] == sum(
            file.length() * file.replication for file in own if isinstance(file, INodeFile)
        )


def test_growth_is_what_the_edits_did(world: tuple[list[INode], list[INode], Any]) -> None:
    before, after, sections = world
    then, now = files(before), files(after)
    total = sections["growth"]["total"]
    assert total["created_files"] == len(now.keys() - then.keys()) > 100
    assert total["deleted_files"] == len(then.keys() - now.keys()) > 100
    grown = [
        now[inode].length() - then[inode].length()
        for inode in then.keys() & now.keys()
        if now[inode].length() > then[inode].length()
    ]
    assert (total["grown_files"], total["grown_bytes"]) == (len(grown), sum(grown))
    assert total["received_bytes"] == 0
    moved = [user["received_bytes"] for user in sections["growth"]["users"]]
    assert sum(moved) == 0
    assert any(moved)
