"""Nameservices whose active Hadoop's clients could not find."""

from pathlib import Path

import pytest

from ha.conf.client_proxy import USUAL_PROXY, without_client_proxy
from ha.conf.configuration import load_configuration

PROXY = "dfs.client.failover.proxy.provider"
NODES = "dfs.ha.namenodes.ns1=nn1,nn2"


@pytest.mark.parametrize(
    ("overrides", "without"),
    [
        ([], ()),
        ([NODES], ("ns1",)),
        ([NODES, f"{PROXY}={USUAL_PROXY}"], ("ns1",)),
        ([NODES, f"{PROXY}.ns1={USUAL_PROXY}"], ()),
        ([f"{PROXY}.ns1={USUAL_PROXY}"], ()),
    ],
    ids=["one NameNode", "no class", "without the suffix", "with the suffix", "one with a class"],
)
def test_a_nameservice_of_several_namenodes_needs_the_class_with_its_suffix(
    tmp_path: Path, overrides: list[str], without: tuple[str, ...]
) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    found = load_configuration(tmp_path, ["dfs.nameservices=ns1", *overrides], environment={})
    assert without_client_proxy(found) == without
