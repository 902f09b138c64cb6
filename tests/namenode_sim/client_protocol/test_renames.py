"""What renames allow, where they put things, and what they log."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from namenode_sim.client_protocol.words.errors import UNRESOLVED_PATH
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits.ops import Rename
from namenode_sim.edits.values import RenameOption
from namenode_sim.namespace.inode import INodeFile
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, linked, prepared, serve

NO_LIMIT = 2**64 - 1
IO = "java.io.IOException"
EXISTS = "org.apache.hadoop.fs.FileAlreadyExistsException"
INVALID = "org.apache.hadoop.fs.InvalidPathException"
NO_PARENT = "org.apache.hadoop.fs.ParentNotDirectoryException"
TOO_LONG = "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException"
LONG = "n" * 256


async def rename(served: Served, src: str, dst: str, user: str = "hdfs") -> bool:
    answer = await served.call("rename", src=src, dst=dst, user=user)
    assert isinstance(answer, calls.RenameResponseProto)
    return answer.result


async def rename2(served: Served, src: str, dst: str) -> None:
    """Call the second rename, which may replace what is at the destination."""
    await served.call("rename2", src=src, dst=dst, overwriteDest=True)


REFUSED_BY_BOTH: dict[str, tuple[str, str, str, str]] = {
    "a path of too many levels": ("/f", "/x" * 1001, IO, "rename: Pathname too long"),
    "a bad name": ("/f", "/a:b", INVALID, "Invalid file name: /a:b"),
    "a name that goes up": ("/f", "/d/../x", INVALID, "Invalid file name: /d/../x"),
    "a long name": ("/f", f"/d/{LONG}", TOO_LONG, f"limit of {LONG} in directory /d is exceeded"),
    "below a file": ("/d", "/f/x", NO_PARENT, r"/f \(is not a directory\)"),
    "what is below a link": ("/link/x", "/x", UNRESOLVED_PATH, "/gone/x"),
    "to below a link": ("/f", "/link/x", UNRESOLVED_PATH, "/gone/x"),
    "to the reserved name": (
        "/f", "/.reserved", INVALID, "Invalid path name Cannot rename to or from /.reserved",
    ),
}  # fmt: skip


@pytest.mark.parametrize("method", ["rename", "rename2"])
@pytest.mark.parametrize(
    ("src", "dst", "java_class", "message"), REFUSED_BY_BOTH.values(), ids=REFUSED_BY_BOTH.keys()
)
async def test_both_renames_refuse(
    method: str, src: str, dst: str, java_class: str, message: str
) -> None:
    served = await linked()
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault, match=message) as refusal:
        await served.call(method, src=src, dst=dst)
    assert refusal.value.java_class == java_class
    assert len(served.log.frames) == edits


FAILING: dict[str, tuple[str, str, str, str]] = {
    "to the root": ("/d/g", "/", IO, "rename destination cannot be the root"),
    "a link to where it leads": (
        "/link", "/gone", EXISTS, "Cannot rename symlink /link to its target /gone",
    ),
    "onto a full directory": (
        "/d/e", "/full", IO, "rename destination directory is not empty: /full",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("src", "dst", "java_class", "message"), FAILING.values(), ids=FAILING.keys()
)
async def test_the_second_rename_refuses(src: str, dst: str, java_class: str, message: str) -> None:
    served = await linked()
    await served.touch("/full/x")
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await rename2(served, src, dst)
    assert (refusal.value.java_class, refusal.value.message) == (java_class, message)
    assert len(served.log.frames) == edits


ANSWERS: dict[str, tuple[str, str, bool]] = {
    "a link": ("/link", "/x", True),
    "a link to where it leads": ("/link", "/gone", False),
    "a link to where it leads, deeper": ("/deep", "/d/gone", False),
    "a link to what is not written in it": ("/relative", "/gone", True),
    "onto a link": ("/f", "/link", False),
    "into a directory in which a link has the name": ("/f", "/d", False),
    "into the root": ("/d/g", "/", True),
}


@pytest.mark.parametrize(("src", "dst", "result"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_the_first_rename_of_links_and_to_the_root(src: str, dst: str, result: bool) -> None:
    served = await linked()
    edits = len(served.log.frames)
    assert await rename(served, src, dst) == result
    assert len(served.log.frames) == edits + result


REPLACED: dict[str, tuple[str, str]] = {
    "a file by a file": ("/f", "/d/g"),
    "an empty directory by a full one": ("/d", "/empty"),
    "a link by a file": ("/f", "/link"),
    "a file by a link": ("/link", "/f"),
    "a link by a link": ("/relative", "/link"),
}


@pytest.mark.parametrize(("src", "dst"), REPLACED.values(), ids=REPLACED.keys())
async def test_the_second_rename_replaces(src: str, dst: str) -> None:
    served = await linked()
    await served.mkdirs("/empty")
    moved = served.namespace.tree.node(src)
    await rename2(served, src, dst)
    assert served.namespace.tree.node(dst) is moved
    assert served.namespace.tree.find(src) is None


OPTIONS = {
    "plain": (False, False, (RenameOption.NONE,)),
    "over what is there": (True, False, (RenameOption.OVERWRITE,)),
    "to the trash": (False, True, (RenameOption.TO_TRASH,)),
    "both": (True, True, (RenameOption.OVERWRITE, RenameOption.TO_TRASH)),
}


@pytest.mark.parametrize(("overwrite", "trash", "options"), OPTIONS.values(), ids=OPTIONS.keys())
async def test_the_edit_has_the_options(
    overwrite: bool, trash: bool, options: tuple[RenameOption, ...]
) -> None:
    served = await prepared()
    await served.call("rename2", src="/f", dst="/x", overwriteDest=overwrite, moveToTrash=trash)
    op = served.log.ops()[-1]
    assert isinstance(op, Rename)
    assert (op.src, op.dst, op.options) == ("/f", "/x", options)


async def with_quotas(**quotas: int) -> Served:
    """``/q``, of six inodes, has ``a/f``, ``b/c`` and ``b/g``; ``/out`` has ``f`` and ``d/e``."""
    served = serve()
    await served.mkdirs("/q/b/c")
    for path in ("/q/a/f", "/q/b/g", "/out/f", "/out/d/e"):
        await served.touch(path)
    for path, quota in quotas.items():
        await served.call(
            "setQuota",
            path=f"/{path.replace('_', '/')}",
            namespaceQuota=quota,
            storagespaceQuota=NO_LIMIT,
        )
    return served


FITTING: dict[str, tuple[dict[str, int], str, str]] = {
    "within a directory that is full": ({"q": 6}, "/q/a/f", "/q/b/c/f"),
    "within one that has too much": ({"q": 1}, "/q/a/f", "/q/b/c/f"),
    "within the same directory": ({"q": 1}, "/q/a/f", "/q/a/x"),
    "over another file": ({"q": 6}, "/out/f", "/q/a/f"),
    "over another where there is too much": ({"q": 1}, "/out/f", "/q/a/f"),
    "the last that fits": ({"q": 7}, "/out/f", "/q/x"),
    "out of a full one": ({"q": 6, "q_b": 3}, "/q/b/g", "/out/g"),
}


@pytest.mark.parametrize(("quotas", "src", "dst"), FITTING.values(), ids=FITTING.keys())
async def test_a_move_within_the_name_quotas(quotas: dict[str, int], src: str, dst: str) -> None:
    served = await with_quotas(**quotas)
    await rename2(served, src, dst)
    assert isinstance(served.namespace.tree.node(dst), INodeFile)


EXCEEDING: dict[str, tuple[dict[str, int], str, str, str]] = {
    "into a full one": ({"q": 6}, "/out/f", "/q/x", "/q is exceeded: quota=6 file count=7"),
    "deep into it": ({"q": 6}, "/out/f", "/q/b/c/x", "/q is exceeded: quota=6 file count=7"),
    "a tree over an empty directory": (
        {"q": 6}, "/out/d", "/q/b/c", "/q is exceeded: quota=6 file count=7",
    ),
    "between the parts of a larger one": (
        {"q": 6, "q_b": 3}, "/q/a/f", "/q/b/c/x", "/q/b is exceeded: quota=3 file count=4",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("quotas", "src", "dst", "message"), EXCEEDING.values(), ids=EXCEEDING.keys()
)
async def test_a_move_beyond_a_name_quota_is_refused(
    quotas: dict[str, int], src: str, dst: str, message: str
) -> None:
    served = await with_quotas(**quotas)
    with pytest.raises(RemoteFault, match=message):
        await rename2(served, src, dst)


FULL: dict[str, tuple[str, str, bool]] = {
    "from elsewhere": ("/d/e/x", "/d/x", False),
    "from elsewhere over what is there": ("/d/e/x", "/d/g", False),
    "within it": ("/d/g", "/d/x", True),
    "out of it": ("/d/g", "/d/e/y", True),
}


@pytest.mark.parametrize(("src", "dst", "allowed"), FULL.values(), ids=FULL.keys())
async def test_a_directory_that_holds_no_more_entries(src: str, dst: str, allowed: bool) -> None:
    served = serve(settings=Settings(max_directory_items=2))
    for path in ("/d/g", "/d/e/x"):
        await served.touch(path)
    if allowed:
        await rename2(served, src, dst)
        return
    with pytest.raises(RemoteFault, match="directory item limit of /d is exceeded"):
        await rename2(served, src, dst)
