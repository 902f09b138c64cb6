"""``nnha config validate`` and ``explain`` as JSON, and for one nameservice of several."""

from pathlib import Path

import pytest

from tests.ha.cli.nnha_run import nnha
from tests.ha.cli.test_own_certificate import SITE

MISSPELT = "dfs.ha.fencing.method=sshfence"


@pytest.fixture
def conf(tmp_path: Path) -> str:
    site = "".join(one for one in SITE.splitlines(keepends=True) if "tls.dir" not in one)
    two = site.replace("<value>ns1</value>", "<value>ns1,ns2</value>", 1)
    two = two.replace("nn2</name><value>127.0.0.1:1<", "nn2</name><value>127.0.0.2:1<")
    two = two.replace("qjournal://127.0.0.1:1/", "qjournal://127.0.0.3:1/")
    (tmp_path / "hdfs-site.xml").write_text(two)
    return str(tmp_path)


async def test_a_misspelt_key_is_a_warning_and_with_strict_a_failure(conf: str) -> None:
    words = ("config", "validate", "--conf-dir", conf, "-ns", "ns1", "-o", "json", "-D", MISSPELT)
    for strict, code in (((), 0), (("--strict",), 8)):
        done = await nnha(*words, *strict)
        assert (done.code, done.document["problems"]) == (code, [])
        assert any(
            "Did you mean dfs.ha.fencing.methods" in one for one in done.document["warnings"]
        )


async def test_a_bad_value_is_a_problem_of_the_document(conf: str) -> None:
    bad = "dfs.ha.zkfc.port=many"
    done = await nnha(
        "config", "validate", "--conf-dir", conf, "-ns", "ns1", "-o", "json", "-D", bad
    )
    assert done.code == 8
    assert any("dfs.ha.zkfc.port is 'many'" in one for one in done.document["problems"])


@pytest.mark.parametrize("command", ["config show", "config validate"])
async def test_a_nameservice_that_there_is_not_is_refused(conf: str, command: str) -> None:
    done = await nnha(*command.split(), "--conf-dir", conf, "--nameservice", "ns7")
    assert (done.code, "lists only ns1, ns2" in done.err) == (3, True)


async def test_keys_of_another_nameservice_are_left_out(conf: str) -> None:
    key = "dfs.namenode.rpc-address.ns1.nn1"
    for nameservice, shown in (("ns1", True), ("ns2", False)):
        done = await nnha("config", "show", "--conf-dir", conf, "-ns", nameservice, "-o", "json")
        assert (key in [one["key"] for one in done.document["settings"]]) is shown


async def test_a_key_is_explained_as_a_document(conf: str) -> None:
    done = await nnha(
        "config", "explain", "dfs.namenode.rpc-address.ns1.nn1", "--conf-dir", conf, "-o", "json"
    )
    found = done.document
    assert (found["key"], found["in_effect"]) == ("dfs.namenode.rpc-address", "127.0.0.1:1")
    assert "hdfs-site.xml line" in found["because_of"]
    assert isinstance(found["listens_on"], list)
