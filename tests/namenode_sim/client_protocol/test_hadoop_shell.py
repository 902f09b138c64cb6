"""Hadoop 3.5.0's unmodified FsShell and file system against our ClientProtocol."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from ha.rpc.server import RpcServer
from tests.namenode_sim.client_protocol.hadoop_shell import HadoopShell, Ran, hadoop_shell
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, Served, serve
from tests.namenode_sim.namespace.dump import differences

pytestmark = pytest.mark.interop

Shell = Callable[..., Any]


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopShell]:
    with hadoop_shell(tmp_path_factory.mktemp("conf"), SUPERUSER) as shell:
        yield shell


@pytest.fixture
async def served() -> AsyncIterator[tuple[Served, int]]:
    namenode = serve()
    server = RpcServer([namenode.face.protocol()])
    yield namenode, await server.start("127.0.0.1", 0)
    await server.stop()


@pytest.fixture
def shell(jvm: HadoopShell, served: tuple[Served, int]) -> Shell:
    async def run(*command: str, code: int = 0) -> Ran:
        ran = await asyncio.to_thread(jvm.run, served[1], *command)
        assert ran.code == code, f"{command}: {ran.err}"
        return ran

    return run


async def test_the_shell_s_commands(shell: Shell, served: tuple[Served, int]) -> None:
    await shell("-mkdir", "-p", "/a/b/c")
    await shell("-touchz", "/a/b/f", "/a/b/g")
    listed = await shell("-ls", "-R", "/")
    names = [line.split()[-1] for line in listed.out.splitlines()]
    assert names == ["/a", "/a/b", "/a/b/c", "/a/b/f", "/a/b/g"]
    assert listed.out.splitlines()[3].startswith("-rw-r--r--   3 hdfs supergroup          0 ")

    await shell("-mv", "/a/b/f", "/a/b/c")
    await shell("-test", "-e", "/a/b/c/f")
    await shell("-test", "-e", "/a/b/f", code=1)
    await shell("-test", "-d", "/a/b/c/f", code=1)
    assert (await shell("-count", "/a")).out.split() == ["3", "2", "0", "/a"]
    quota = await shell("-count", "-q", "/a")
    assert quota.out.split() == ["none", "inf", "none", "inf", "3", "2", "0", "/a"]
    assert (await shell("-du", "-s", "/a")).out.split() == ["0", "0", "/a"]
    assert "Filesystem" in (await shell("-df", "/")).out
    found = await shell("-find", "/a", "-name", "f")
    assert found.out.split() == ["/a/b/c/f"]

    await shell("-chmod", "1777", "/a/b")
    await shell("-chown", "alice:staff", "/a/b")
    await shell("-setrep", "2", "/a/b/g")
    await shell("-touch", "-t", "20200102:030405", "/a/b/g")
    assert (await shell("-stat", "%F %a %u %g %n", "/a/b")).out.split() == [
        "directory",
        "1777",
        "alice",
        "staff",
        "b",
    ]
    assert (await shell("-stat", "%r %b %o", "/a/b/g")).out.split() == ["2", "0", "134217728"]
    assert (await shell("-getfacl", "/a/b")).out.startswith("# file: /a/b\n# owner: alice\n")
    assert (await shell("-cat", "/a/b/g")).out == ""

    await shell("-rm", "-r", "/a/b/c")
    await shell("-rm", "/a/b/g")
    await shell("-rmdir", "/a/b")
    await shell("-ls", "/a/b", code=1)
    namenode, _ = served
    assert differences(namenode.namespace, namenode.log.replayed()) == []


async def test_attributes_the_shell_can_set(shell: Shell, served: tuple[Served, int]) -> None:
    await shell("-mkdir", "/d")
    await shell("-setfacl", "-m", "user:bob:rw-,default:group:staff:r-x", "/d")
    listed = (await shell("-getfacl", "/d")).out
    assert "user:bob:rw-" in listed
    assert "default:group:staff:r-x" in listed
    await shell("-touchz", "/d/f")
    assert "group:staff:r-x" in (await shell("-getfacl", "/d/f")).out
    await shell("-setfacl", "-b", "/d")
    await shell("-setfattr", "-n", "user.colour", "-v", "red", "/d/f")
    assert 'user.colour="red"' in (await shell("-getfattr", "-d", "/d/f")).out
    await shell("-setfattr", "-x", "user.colour", "/d/f")
    namenode, _ = served
    assert differences(namenode.namespace, namenode.log.replayed()) == []


FAILURES = {
    "listing what is not there": (("-ls", "/none"), "`/none': No such file or directory"),
    "a directory over a file": (("-mkdir", "/f"), "`/f': Is not a directory"),
    "below a missing parent": (("-mkdir", "/x/y"), "/x': No such file or directory"),
    "removing a full directory": (("-rmdir", "/d"), "`/d': Directory is not empty"),
    "moving onto a file": (("-mv", "/d", "/f"), "`/f': File exists"),
    "writing data": (("-appendToFile", "-", "/f"), "could only be written to 0"),
}


@pytest.mark.parametrize(("command", "says"), FAILURES.values(), ids=FAILURES.keys())
async def test_what_the_shell_says_when_it_fails(
    shell: Shell, command: tuple[str, ...], says: str
) -> None:
    await shell("-mkdir", "-p", "/d/e")
    await shell("-touchz", "/f")
    if command[0] == "-appendToFile":
        command = ("-appendToFile", str(Path(__file__)), "/f")
    ran = await shell(*command, code=1)
    assert says in ran.err + ran.out


JAVA_FAULTS = {
    "create below a file": (
        lambda fs, path: fs.create(path("/f/x")),
        "ParentNotDirectoryException",
        "/f (is not a directory)",
    ),
    "create over a directory": (
        lambda fs, path: fs.create(path("/d")),
        "FileAlreadyExistsException",
        "/d already exists as a directory",
    ),
    "create without overwriting": (
        lambda fs, path: fs.create(path("/f"), False),
        "FileAlreadyExistsException",
        "/f for client 127.0.0.1 already exists",
    ),
    "delete a full directory": (
        lambda fs, path: fs.delete(path("/d"), False),
        "PathIsNotEmptyDirectoryException",
        "``/d is non empty': Directory is not empty': Directory is not empty: "
        "`/d is non empty': Directory is not empty",  # the client wraps it, twice
    ),
    "owner of nothing": (
        lambda fs, path: fs.setOwner(path("/none"), "alice", None),
        "FileNotFoundException",
        "Directory/File does not exist /none",
    ),
    "open nothing": (
        lambda fs, path: fs.open(path("/none")),
        "FileNotFoundException",
        "File does not exist: /none",
    ),
    "a quota on a file": (
        lambda fs, path: fs.setQuota(path("/f"), 5, 5),
        "RemoteException",
        "`/f': Is not a directory",
    ),
}


@pytest.mark.parametrize(
    ("action", "java_class", "message"), JAVA_FAULTS.values(), ids=JAVA_FAULTS.keys()
)
async def test_exceptions_arrive_as_their_class(
    jvm: HadoopShell,
    served: tuple[Served, int],
    action: Callable[[Any, Callable[[str], Any]], Any],
    java_class: str,
    message: str,
) -> None:
    namenode, port = served
    await namenode.mkdirs("/d/e")
    await namenode.touch("/f")

    def attempt() -> tuple[str, str]:
        file_system = jvm.file_system(port)
        try:
            action(file_system, jvm.path)
        except Py4JJavaError as error:
            fault: Any = error.java_exception
            return fault.getClass().getSimpleName(), str(fault.getMessage()).split("\n")[0]
        finally:
            file_system.close()
        return "", ""

    assert await asyncio.to_thread(attempt) == (java_class, message)


async def test_a_directory_of_many_pages_is_listed_in_order(
    jvm: HadoopShell, served: tuple[Served, int]
) -> None:
    namenode, port = served
    for number in range(2500):
        await namenode.mkdirs(f"/many/{number:04}")

    def names() -> list[str]:
        file_system = jvm.file_system(port)
        try:
            return [str(s.getPath().getName()) for s in file_system.listStatus(jvm.path("/many"))]
        finally:
            file_system.close()

    assert await asyncio.to_thread(names) == [f"{number:04}" for number in range(2500)]
