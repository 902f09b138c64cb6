"""Fuzzing finds a decoder that lets a foreign exception out, each by its own seeds.

A bug is planted by a name that a decoder's module takes for a builtin or an import: what it should
translate is then another exception's.
"""

from pathlib import Path

import pytest

from tests.campaigns.soak.fuzz_random import fuzz_at_random
from tests.campaigns.soak.fuzz_targets import TARGETS
from tests.in_turn import in_turn
from tests.needs import FILES_OF_HADOOP

CASES = 3000


class OtherError(Exception):
    """No code raises it."""


PLANTED = {
    "edits": ("namenode_sim.edits.codec", "StructError"),
    "op": ("namenode_sim.edits.codec", "_MALFORMED"),
    "journal-frames": ("journal.frame", "KeyError"),
    "edits-xml": ("namenode_sim.oev.xml_reader", "ValueError"),
    "edits-jsonl": ("namenode_sim.oev.json_lines", "ValueError"),
    "image": ("namenode_sim.image.sections", "BROKEN"),
    "rpc": ("ha.rpc.packets", "DecodeError"),
    "conf": ("ha.conf.reader", "ConfigurationError"),
    "breadcrumb": ("ha.elector.zookeeper.breadcrumb", "DecodeError"),
    "notices": ("ha.notices.codec", "RecursionError"),
    "term": ("ha.elector.term", "RecursionError"),
    "lane-hello": ("journal.lane", "UnicodeDecodeError"),
    "journal-requests": ("ha.rpc.packets", "DecodeError"),
    "java-journal-requests": ("journal.node.faces.hadoop_codec", "BadRequest"),
    "refusal": ("journal.refusals", "ValueError"),
    "transfer": ("hadoop.wire.packets", "DecodeError"),
    "packet": ("hadoop.wire.packets", "DecodeError"),
    "negotiate": ("ha.security.sasl.negotiate_header", "ValueError"),
}


@pytest.mark.parametrize("target", in_turn(TARGETS))
def test_an_exception_that_is_not_translated_is_found(
    target: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = (known for known in TARGETS if known is target)
    if not one.seeds():
        FILES_OF_HADOOP.skip()
    module, name = PLANTED[one.name]
    monkeypatch.setattr(f"{module}.{name}", OtherError, raising=False)
    cases, findings = fuzz_at_random(one, seconds=0, count=CASES, seed=5, folder=tmp_path)
    assert findings, f"{cases} cases"


def test_every_target_has_a_planted_bug() -> None:
    assert set(PLANTED) == {target.name for target in TARGETS}
