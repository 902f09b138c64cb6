"""``nnha fs`` on a whole cluster: as Hadoop's own shell says it, and through a failover."""

import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import pytest
from click.testing import CliRunner

import files.cli
from deploy.local.cluster.cluster import open_cluster
from deploy.local.cluster.processes import wait_until
from ha.cli.main import main
from tests.ha.cli.nnha_run import untouched_logging
from tests.ha.cli.schema import faults
from tests.interop.hadoop_server import Hadoop
from tests.interop.our_cluster import SHELL, OurCluster, programs_on

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

SCHEMA = Path(files.cli.__file__).parent / "schemas" / "fs.json"
SECONDS = 90.0
NAMES = ("plain", "with blank", "ümlaut-日本", "star*", "what?", "[ab]", "{a,b}", "per%20cent",
         "a'b", 'quo"te', "$HOME", "-dash", "#hash", "a+b&c=d;e")  # fmt: skip


@pytest.fixture(scope="module")
def ours(hadoop: Hadoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurCluster]:
    folder = tmp_path_factory.mktemp("fs")
    more = {
        "fs.trash.interval": "60",
        "nnha.audit.client": str(folder / "calls.log"),
        "hadoop.caller.context.enabled": "true",
    }
    with open_cluster(folder / "cluster", datanodes=2, more_keys=more) as cluster:
        cluster.up()
        with programs_on(cluster, hadoop) as made:
            yield made


def command(ours: OurCluster, *words: str) -> list[str]:
    head = [sys.executable, "-m", "ha.cli.main", "fs", words[0]]
    return [*head, "--conf-dir", str(ours.cluster.conf_dir), *words[1:]]


def fs(ours: OurCluster, *words: str, code: int = 0, given: bytes | None = None) -> str:
    """Return what a command prints to both outputs; it must end with this code.

    It runs in this process, but for one that reads standard input.
    """
    if given is None:
        with untouched_logging():
            ran = CliRunner().invoke(main, command(ours, *words)[3:])
        status, said = ran.exit_code, ran.stdout + ran.stderr
    else:
        done = subprocess.run(
            command(ours, *words), input=given, capture_output=True, timeout=SECONDS, check=False
        )
        status, said = done.returncode, (done.stdout + done.stderr).decode()
    assert status == code, f"{words}: {status}: {said}"
    return said


def document(ours: OurCluster, *words: str, code: int = 0) -> dict[str, list[dict[str, object]]]:
    """Return what a command prints with -o json, which is as its schema says."""
    found = json.loads(fs(ours, *words, "-o", "json", code=code))
    assert faults(SCHEMA, found) == []
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def tree(ours: OurCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Put a folder with names that need quoting, and return where it is."""
    top = tmp_path_factory.mktemp("local") / "odd"
    top.mkdir()
    for number, name in enumerate(NAMES):
        (top / name).write_bytes(b"x" * (number * 400))
        (top / f"folder {name}").mkdir()
        (top / f"folder {name}" / name).write_bytes(b"y" * 1500)
    fs(ours, "put", str(top), "/")
    fs(ours, "chmod", "1750", r"/odd/folder star\*")
    return "/odd"


def test_all_lists_are_those_of_hadoops_shell(ours: OurCluster, tree: str) -> None:
    wrong: list[str] = []
    for words in (
        ("ls", tree), ("ls", "-R", tree), ("ls", "-d", tree), ("ls", "-h", "-S", "-r", tree),
        ("ls", r"/odd/star\*"), ("ls", "/odd/folder*/{star,what}?"), ("ls", "-d", "/o*/[#$-]*"),
        ("ls", "hdfs://ns1/odd/w*"), ("ls", "/odd/{plain,folder plain/p*}"), ("ls", "/odd/a[+']*"),
        ("du", tree), ("du", "-s", "-h", tree), ("du", "-h", "/odd/folder*"),
        ("stat", "%a %A %b %F %g %n %o %r %u %y %Y %%", "/odd/*"), ("stat", tree),
        ("find", tree), ("find", tree, "-name", r"\[ab]"), ("find", "/", "-iname", "*STAR*"),
        ("checksum", "/odd/folder*/*a*"), ("cat", "/odd/folder with*/*"),
    ):  # fmt: skip
        theirs = ours.shell(f"-{words[0]}", *words[1:])
        differ = unified_diff(theirs.splitlines(), fs(ours, *words).splitlines(), n=0, lineterm="")
        wrong += [f"{words}: {line}" for line in differ]
    assert not wrong, "\n".join(wrong)


def test_hadoops_shell_puts_reads_appends_and_cuts(ours: OurCluster, tmp_path: Path) -> None:
    content = random.Random(1).randbytes(2_500_000)
    local, more, back = tmp_path / "content", tmp_path / "more", tmp_path / "back"
    local.write_bytes(content)
    more.write_bytes(b"and more")
    ours.shell("-put", str(local), "/shell")
    ours.shell("-appendToFile", str(more), "/shell")
    ours.shell("-get", "/shell", str(back))
    assert back.read_bytes() == content + b"and more"
    assert "MD5-of-0MD5-of-512CRC32C" in ours.shell("-checksum", "/shell")
    ours.shell("-truncate", "-w", "1000000", "/shell")
    ours.shell("-setrep", "-w", "1", "/shell")
    assert ours.shell("-stat", "%b %r %n", "/shell").split() == ["1000000", "1", "shell"]
    assert "hdfs://ns1" in ours.shell("-df", "/")


def test_relative_paths_and_the_home_are_hadoops(ours: OurCluster) -> None:
    fs(ours, "mkdir", "-p", "a/b c", "../shared")
    for line in ("ls", "ls .", "ls a", "ls *", "ls -R ..", "find ."):
        assert fs(ours, *line.split()) == ours.shell(*f"-{line}".split()), line
    fs(ours, "rm", "-r", "--skip-trash", "a", "../shared")


def test_a_folder_comes_back_as_it_went(ours: OurCluster, tree: str, tmp_path: Path) -> None:
    fs(ours, "get", tree, str(tmp_path))
    found = {
        one.relative_to(tmp_path / "odd").as_posix(): one.read_bytes()
        for one in (tmp_path / "odd").rglob("*")
        if one.is_file()
    }
    assert set(found) == {*NAMES, *(f"folder {name}/{name}" for name in NAMES)}
    assert found["$HOME"] == b"x" * (NAMES.index("$HOME") * 400)
    again = fs(ours, "get", tree, str(tmp_path), code=3)
    assert again.count("is there already") == 2 * len(NAMES)
    assert not list(tmp_path.rglob("*._COPYING_"))


def test_bytes_go_through_the_death_of_the_active(ours: OurCluster, tmp_path: Path) -> None:
    """It dies between the halves of a put, while another command follows what is written."""
    content = random.Random(4).randbytes(5_000_000)
    partial = "/five._COPYING_"
    with (
        subprocess.Popen(command(ours, "put", "-", "/five"), stdin=subprocess.PIPE) as put,
        (tmp_path / "followed").open("wb") as out,
    ):
        assert put.stdin is not None
        put.stdin.write(content[:2_500_000])
        put.stdin.flush()

        def is_open() -> bool:
            done = subprocess.run(command(ours, "ls", partial), capture_output=True, check=False)
            return done.returncode == 0

        wait_until(is_open, what="the file to be open", deadline_seconds=SECONDS)
        with subprocess.Popen(command(ours, "tail", "-f", partial), stdout=out) as follower:
            wait_until(
                lambda: Path(out.name).stat().st_size > 0,
                what="the follower to see something",
                deadline_seconds=SECONDS,
            )
            ours.cluster.kill(ours.cluster.wait_for_active())
            put.stdin.write(content[2_500_000:4_900_000])
            put.stdin.flush()
            wait_until(
                lambda: Path(out.name).stat().st_size > 1_000_000,
                what="the follower to see more, of another NameNode",
                deadline_seconds=SECONDS,
            )
            follower.send_signal(signal.SIGINT)
            assert follower.wait(SECONDS) == 130
        put.stdin.write(content[4_900_000:])
        put.stdin.close()
        assert put.wait(SECONDS) == 0
    assert (tmp_path / "followed").read_bytes() in content
    fs(ours, "get", "/five", str(tmp_path))
    digest = hashlib.sha256((tmp_path / "five").read_bytes()).digest()
    assert digest == hashlib.sha256(content).digest()
    assert document(ours, "ls", partial, code=3)["failures"][0]["code"] == "NO_SUCH_PATH"
    ours.cluster.heal()


def test_an_interrupted_put_leaves_nothing(ours: OurCluster) -> None:
    with subprocess.Popen(
        command(ours, "put", "-", "/never"), stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as put:
        assert put.stdin is not None
        put.stdin.write(b"z" * 200_000)
        put.stdin.flush()
        wait_until(
            lambda: "COPYING" in fs(ours, "find", "/", "-maxdepth", "1"),
            what="the file to be open",
            deadline_seconds=SECONDS,
        )
        put.send_signal(signal.SIGINT)
        assert put.wait(SECONDS) == 130
    assert "never" not in fs(ours, "find", "/", "-maxdepth", "1")


def test_refusals_change_nothing_and_say_what_is_there(ours: OurCluster, tree: str) -> None:
    before = ours.shell("-ls", "-R", "/odd")
    cases = {
        ("ls", "/no"): (3, "NO_SUCH_PATH"),
        ("ls", "/no*"): (3, "NO_SUCH_PATH"),
        ("ls", "/[a"): (3, "BAD_PATH"),
        ("ls", "hdfs://elsewhere/"): (3, "BAD_PATH"),
        ("mkdir", tree): (3, "PATH_EXISTS"),
        ("mkdir", "/no/a"): (3, "NO_SUCH_PATH"),
        ("rm", tree): (3, "UNFIT_PATH"),
        ("rm", "-r", "/"): (3, "UNFIT_PATH"),
        ("mv", "/odd/plain", "/odd/a'b"): (3, "PATH_EXISTS"),
        ("mv", tree, "/odd/x"): (3, "UNFIT_PATH"),
        ("mv", "/odd/plain", "/no/a"): (3, "NO_SUCH_PATH"),
        ("chmod", "9", tree): (3, "BAD_PATH"),
        ("chown", ":", tree): (3, "BAD_PATH"),
        ("put", "/no such", tree): (3, "NO_SUCH_PATH"),
        ("put", __file__, "/odd/plain"): (3, "PATH_EXISTS"),
        ("put", "-", tree): (3, "UNFIT_PATH"),
        ("get", "/odd/plain", "/no such/a"): (3, "NO_SUCH_PATH"),
        ("checksum", tree): (3, "UNFIT_PATH"),
    }
    for words, (code, name) in cases.items():
        found = document(ours, *words, code=code)["failures"]
        assert [one["code"] for one in found] == [name], (words, found)
    assert ours.shell("-ls", "-R", "/odd") == before


def test_the_trash_is_hadoops(ours: OurCluster) -> None:
    home = f"/user/{os.environ.get('USER') or 'root'}"
    fs(ours, "mkdir", "-p", "/t/d")
    for _ in range(2):
        fs(ours, "put", "-", "/t/f", given=b"x")
        found = document(ours, "rm", "/t/f", "/t/gone", code=4)
        trash = str(found["results"][0]["trash"])
        assert trash.startswith(f"{home}/.Trash/Current/t/f")
        assert ours.shell("-cat", trash) == "x"
    assert document(ours, "rm", "-f", "-r", "/t", "/t/gone")["failures"] == []
    assert "Deleted" in fs(ours, "rm", "-r", f"{home}/.Trash/Current/t")
    assert "contains the trash" in fs(ours, "rm", "-r", home, code=3)


def test_rights_are_the_users_own(ours: OurCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    fs(ours, "mkdir", "-p", "/user/bob")
    fs(ours, "chown", "bob:staff", "/user/bob")
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    fs(ours, "put", "-", "mine", given=b"1")
    fs(ours, "chmod", "u=rw,go-rwx", "mine")
    assert document(ours, "ls", "mine")["results"][0]["permission"] == "0600"
    found = document(ours, "mkdir", "/odd/bobs", "bobs", code=4)["failures"]
    assert [one["code"] for one in found] == ["ACCESS_DENIED"]
    assert "bob may not" in str(found[0]["message"])
    assert document(ours, "mkdir", "/odd/bobs", code=7)["results"] == []


def test_a_directory_that_may_not_be_read_keeps_no_other_back(
    ours: OurCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs(ours, "mkdir", "-p", "/walk/a/x", "/walk/b/y")
    fs(ours, "put", "-", "/walk/b/f", given=b"1")
    fs(ours, "chmod", "700", "/walk/a")
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    below = ["/walk/a", "/walk/b", "/walk/b/f", "/walk/b/y"]
    for words, seen, code in (
        (("ls", "-R", "/walk"), below, 7),
        (("find", "/walk"), ["/walk", *below], 7),
        (("du", "/walk"), ["/walk/b"], 7),
        (("get", "/walk", str(tmp_path)), ["/walk/b/f"], 4),
        (("chmod", "-R", "755", "/walk/b", "/walk/a"), ["/walk/b", "/walk/b/y"], 7),
    ):
        found = document(ours, *words, code=code)
        assert [one["path"] for one in found["results"]] == seen, words
        assert {one["code"] for one in found["failures"]} == {"ACCESS_DENIED"}, words
    assert (tmp_path / "walk" / "b" / "f").read_bytes() == b"1"


def test_hadoops_namenode_and_datanodes_serve_it_as_well(hadoop: Hadoop, tmp_path: Path) -> None:
    content = random.Random(5).randbytes(150_000)
    (tmp_path / "local").write_bytes(content)
    with hadoop.cluster(tmp_path / "java", data_nodes=2) as cluster:
        keys = {
            "dfs.nameservices": "java",
            "dfs.ha.namenodes.java": "nn1",
            "dfs.namenode.rpc-address.java.nn1": f"127.0.0.1:{cluster.getNameNodePort()}",
        }
        text = "".join(
            f"<property><name>{key}</name><value>{value}</value></property>"
            for key, value in keys.items()
        )
        for name in ("core-site.xml", "hdfs-site.xml"):
            (tmp_path / name).write_text(f"<configuration>{text}</configuration>")
        path, theirs = hadoop.path("/d/a b"), cluster.getFileSystem()

        def run(*words: str) -> str:
            with untouched_logging():
                ran = CliRunner().invoke(main, ["fs", *words, "--conf-dir", str(tmp_path)])
            assert ran.exit_code == 0, ran.stderr
            return ran.stdout

        run("mkdir", "/d")
        run("put", str(tmp_path / "local"), "/d/a b")
        assert theirs.getFileStatus(path).getLen() == len(content)
        run("get", "/d/a*", str(tmp_path / "back"))
        assert (tmp_path / "back").read_bytes() == content
        digest = run("checksum", "/d/a b").split("\t")
        told = theirs.getFileChecksum(path)
        assert digest[1] == told.getAlgorithmName()
        assert digest[2].strip() == bytes(told.getBytes())[: told.getLength()].hex()
        run("chmod", "-R", "go-rwx", "/d")
        run("mv", "/d/a b", "/d/ü")
        assert " /d/ü" in run("ls", "/d")
        run("rm", "-r", "/d")
        assert not theirs.exists(hadoop.path("/d"))


def test_where_no_namenode_is_active_nothing_is_done(ours: OurCluster) -> None:
    names = [*ours.cluster.layout.namenodes]
    keys = [f"dfs.namenode.rpc-address.ns1.{name}=127.0.0.1:1" for name in names]
    options = [part for key in keys for part in ("-D", key)]
    found = document(ours, "rm", *options, "--timeout", "0.5", "/odd", code=6)["failures"]
    assert [one["code"] for one in found] == ["NO_ANSWER"]


@pytest.mark.parametrize(
    "words", [("rm", "/odd"), ("mkdir", "/a"), ("ls", "/"), ("cat", "/a"), ("put", __file__, "/a")]
)
def test_a_question_without_an_answer_leaves_nothing_unknown(
    ours: OurCluster, words: tuple[str, ...]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        names = ours.cluster.layout.namenodes
        keys = [f"dfs.namenode.rpc-address.ns1.{name}=127.0.0.1:{port}" for name in names]
        options = [part for key in keys for part in ("-D", key)]
        assert "no NameNode answered" in fs(
            ours, words[0], *options, "--timeout", "0.3", *words[1:], code=6
        )


def test_tab_offers_paths_in_each_shell(ours: OurCluster, tree: str, tmp_path: Path) -> None:
    program = tmp_path / "nnha"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ha.cli.main "$@"\n')
    program.chmod(0o755)
    surroundings = {
        **os.environ,
        "HADOOP_CONF_DIR": str(ours.cluster.conf_dir),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }

    def run(*words: str) -> list[str]:
        done = subprocess.run(
            words, env=surroundings, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        return done.stdout.splitlines()

    def bash(*words: str) -> list[str]:
        listed = " ".join(f"'{word}'" for word in words)
        ask = f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _nnha_completion nnha"
        show = """printf '%s\\n' "${COMPREPLY[@]}\""""
        return run("bash", "-c", f"source <(nnha completion bash); {ask}; {show}")

    assert bash("nnha", "fs", "ls", "/od") == ["/odd/"]
    assert bash("nnha", "fs", "ls", "/odd/with") == [r"/odd/with\ blank"]
    assert bash("nnha", "fs", "mv", "/odd/plain", "/odd/st") == [r"/odd/star\\\*"]
    assert bash("nnha", "fs", "get", "hdfs://ns1/odd/a+") == [r"hdfs://ns1/odd/a+b\&c=d\;e"]
    assert bash("nnha", "fs", "ls", "/nothing") == [""]
    assert bash("nnha", "fs", "ls", "-D", "dfs.ha.namenodes.ns1=nn9", "/od") == [""]
    if shutil.which("fish"):
        ask = "complete -C 'nnha fs ls /odd/folder\\ wi'"
        assert run("fish", "-c", f"nnha completion fish | source; {ask}") == [
            "/odd/folder with blank/"
        ]


def test_a_call_of_hadoops_shell_has_its_line_in_the_audit_log(ours: OurCluster) -> None:
    audit = ours.cluster.layout.directory.parent / "calls.log"
    assert ours.run(SHELL, "-mkdir", "/audited-é😀").status == 0
    assert ours.run(SHELL, "-rmdir", "/audited-é😀").status == 0
    path = r"src=/audited-\u00E9\uD83D\uDE00" "\tdst=null\tperm="

    def said() -> list[str]:
        lines = (line.split("\tcmd=")[-1] for line in audit.read_text().splitlines())
        return [line.partition("\tcallerContext=CLI")[0] for line in lines if path in line]

    def is_there() -> bool:
        made, gone = said(), f"delete\t{path}null\tproto=rpc"
        return gone in made and any(one.startswith(f"mkdirs\t{path}") for one in made)

    wait_until(is_there, what="lines of the shell's calls", deadline_seconds=SECONDS)
    assert any(one.endswith(":rwxr-xr-x\tproto=rpc") for one in said())
