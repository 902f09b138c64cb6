"""What the audit log says of a JournalNode's calls, and the addresses that the node listens on."""

import asyncio
from pathlib import Path

import pytest

from ha.conf.keys import journal as keys
from ha.conf.keys.security import Mode
from ha.conf.listening import Door
from ha.security.audit_text import Outcome
from ha.security.caller import unproven
from journal.node.faces.grpc_access import GrpcAccess
from journal.node.process.command import doors
from journal.node.settings import NodeSettings
from tests.ha.security.test_unproven import Lines, silent

CALLER = unproven("192.0.2.7")


def _failure(why: str) -> BaseException:
    failure = RuntimeError("the call was ended")
    failure.__context__ = OSError(why)
    return failure


ENDS: dict[str, tuple[BaseException | None, Outcome, str]] = {
    "an answer": (None, Outcome.DONE, ""),
    "cancelled": (asyncio.CancelledError(), Outcome.UNKNOWN, ""),
    "an error": (ValueError("no such journal"), Outcome.FAILED, "no such journal"),
    "ended for a reason": (_failure("the disk is full"), Outcome.FAILED, "the disk is full"),
}


@pytest.mark.parametrize(("failure", "outcome", "reason"), ENDS.values(), ids=ENDS)
def test_the_end_of_an_audited_call_is_written_down_as_what_it_was(
    failure: BaseException | None, outcome: Outcome, reason: str
) -> None:
    lines = Lines()
    access = GrpcAccess(silent(Mode.INSECURE, lines), "127.0.0.1", lambda: 1)
    access.ended(CALLER, "Format", failure)
    access.ended(CALLER, "GetStatus", failure)  # a look is not written down
    (line,) = lines.entries
    assert (line.action, line.outcome, line.reason) == ("Format", outcome, reason)


@pytest.mark.parametrize("hadoop", [None, "h3"])
@pytest.mark.parametrize("lanes", [None, "h4"])
def test_each_address_is_named_by_its_own_key(
    hadoop: str | None, lanes: str | None, tmp_path: Path
) -> None:
    settings = NodeSettings(
        folder=tmp_path, rpc_host="h1", rpc_port=1, http_host="h2", http_port=2,
        hadoop_host=hadoop, hadoop_port=3, lane_host=lanes, lane_port=4,
        addresses_because={"rpc": "of the quorum", "http": "of the mode"},
    )  # fmt: skip
    expected = [Door(keys.RPC.name, "h1", 1), Door(keys.HTTP.name, "h2", 2)]
    if hadoop is not None:
        expected.append(Door(keys.HADOOP_RPC.name, hadoop, 3))
    if lanes is not None:
        expected.append(Door(keys.WRITE_LANES.name, lanes, 4))
    found = doors(settings)
    assert found == expected
    assert [door.why for door in found[:2]] == ["of the quorum", "of the mode"]
