"""docs/fencing.md names keys, defaults and methods that exist."""

import re

from fencing.spec import parse_methods
from ha.conf.keys.cluster import FENCING_METHOD_TIMEOUT, FENCING_TOTAL_TIMEOUT, SSH_COMMAND_TIMEOUT
from ha.conf.keys.table import KEYS
from tests import ROOT

TEXT = (ROOT / "docs" / "fencing.md").read_text(encoding="utf-8")


def test_every_key_exists() -> None:
    named = set(re.findall(r"`((?:nnha|dfs)\.[a-z.-]+)`", TEXT))
    assert len(named) >= 10
    assert named <= KEYS.keys()
    assert {name for name in KEYS if name.startswith("nnha.fencing.")} <= named


def test_the_defaults_are_those_of_the_keys() -> None:
    assert f"`{FENCING_METHOD_TIMEOUT.name}` ({FENCING_METHOD_TIMEOUT.default[:-1]} s)" in TEXT
    assert f"`{FENCING_TOTAL_TIMEOUT.name}` ({FENCING_TOTAL_TIMEOUT.default[:-1]} s)" in TEXT
    assert f"| `{SSH_COMMAND_TIMEOUT.name}` | {SSH_COMMAND_TIMEOUT.default[:-1]} s |" in TEXT
    for name in ("nnha.fencing.ssh.host-keys", "nnha.fencing.ssh.known-hosts"):
        assert f"| `{name}` | {KEYS[name].default} |" in TEXT


def test_the_example_can_be_used() -> None:
    example = re.search(r"<value>\n(.*?)</value>", TEXT, re.DOTALL)
    assert example is not None
    assert [str(method).partition("(")[0] for method in parse_methods(example[1])] == [
        "sshfence", "shell", "journal-epoch",
    ]  # fmt: skip
