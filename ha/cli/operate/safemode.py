"""``nnha safemode``: shows and switches the safe mode of NameNodes, or waits for its end."""

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import click
from google.protobuf.wrappers_pb2 import BoolValue, Int32Value

from ha.cli.operate.notice_options import YES, Duration
from ha.cluster.files_view import files_view
from ha.cluster.query import fetch
from ha.conf.topology import NameNodeAddress, namenodes
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.completion import namenode_ids
from ha.console.result import Code, CommandOutcome, Ended, Ending, Reason
from ha.daemon import event_loop
from ha.record import dataclass
from ha.rpc.client import call_once
from ha.rpc.errors import ConnectFailed, RemoteFault, RpcError
from ha.rpc.java_names import ACCESS_CONTROL, CLIENT_PROTOCOL

ANSWER_SECONDS: Final = 5.0
POLL_SECONDS: Final = 1.0
_ACTIONS: Final = {"get": 3, "enter": 2, "leave": 1, "wait": 3, "forceExit": 4}
"""What is sent: Hadoop's SafeModeActionProto.  An Int32Value is the same bytes as its request."""
_ASKING: Final = ("get", "wait")
_CODES: Final = {
    CommandOutcome.UNKNOWN: Code.OUTCOME_UNKNOWN,
    CommandOutcome.UNREACHABLE: Code.NO_ANSWER,
    CommandOutcome.UNAUTHORISED: Code.ACCESS_DENIED,
    CommandOutcome.REFUSED: Code.NOT_SEEN_BY_ALL,
    CommandOutcome.FAILED: Code.NOT_SEEN_BY_ALL,
    CommandOutcome.DONE: Code.DONE,
}
"""How it ended on a NameNode: the first of these that has come is how the whole has."""
_FINAL: Final = {CommandOutcome.UNAUTHORISED, CommandOutcome.REFUSED}


@dataclass(frozen=True, slots=True)
class _Answer:
    namenode: str
    outcome: CommandOutcome
    on: bool | None
    text: str


@click.command()
@click.argument("action", type=click.Choice(list(_ACTIONS)))
@click.argument("namenode", required=False, shell_complete=namenode_ids)
@click.option(
    "--for", "longest_seconds", type=Duration(), default="10m", show_default=True, metavar="TIME",
    help="How long to wait.",
)  # fmt: skip
@YES
@about_a_cluster("safemode", timeout_seconds=ANSWER_SECONDS)
def safemode(
    *, place: ClusterCommand, action: str, namenode: str | None, longest_seconds: float, yes: bool
) -> None:
    """Show, enter or leave safe mode, or wait until it is off, on NAMENODE or on all NameNodes.

    No file can be changed while it is on. To switch it is for the superuser; forceExit leaves it
    even where replicas of a newer file system are deleted then. Exits 0 done, 3 refused or not
    confirmed, 4 not as it should be everywhere (in time), 5 outcome unknown, 6 no answer, 7 not
    allowed.
    """
    known = namenodes(place.configuration, place.nameservice)
    asked = [one for one in known if namenode in (None, one.namenode)]
    names = ", ".join(one.namenode for one in asked or known)
    command = f"safemode {action}"
    again = f"nnha {command}{f' {namenode}' if namenode else ''}"
    if not asked:
        found = f"there is no NameNode {namenode} in {place.nameservice}: it has {names}"
        raise Ended(Ending(command, CommandOutcome.REFUSED, Code.NO_SUCH_NODE, found))
    if action not in _ASKING and not yes and not _confirmed(place, f"{again}, on {names}"):
        outcome, found = CommandOutcome.REFUSED, f"{command} on {names} was not confirmed"
        raise Ended(Ending(command, outcome, Code.NOT_CONFIRMED, found, hint=f"{again} --yes"))
    end, said = time.monotonic() + longest_seconds, ""
    while True:
        answers = event_loop.run(_ask_all(asked, action, place.timeout_seconds))
        outcomes, left = {one.outcome for one in answers}, end - time.monotonic()
        over = outcomes == {CommandOutcome.DONE} or outcomes & _FINAL or left <= 0
        if action != "wait" or over:
            raise Ended(_ending(action, again, answers))
        if said != (said := "; ".join(f"{one.namenode} {one.text}" for one in answers)):
            click.echo(said, err=True)
        time.sleep(min(POLL_SECONDS, left))


def _confirmed(place: ClusterCommand, what: str) -> bool:
    """Ask at the terminal; without one the answer is no."""
    if not sys.stdin.isatty() or place.output != "table":
        return False
    return click.confirm(f"{what}: are you sure?", default=False)


async def _ask_all(
    nodes: Sequence[NameNodeAddress], action: str, seconds: float
) -> Sequence[_Answer]:
    return await asyncio.gather(*(_ask(one, action, seconds) for one in nodes))


async def _ask(node: NameNodeAddress, action: str, seconds: float) -> _Answer:
    try:
        told = await call_once(
            node.rpc, CLIENT_PROTOCOL, "setSafeMode", Int32Value(value=_ACTIONS[action]), BoolValue,
            deadline_seconds=seconds,
        )  # fmt: skip
    except RemoteFault as fault:
        denied = fault.java_class == ACCESS_CONTROL
        outcome = CommandOutcome.UNAUTHORISED if denied else CommandOutcome.REFUSED
        return _Answer(node.namenode, outcome, None, fault.reason)
    except RpcError as silence:
        nothing_done = isinstance(silence, ConnectFailed) or action in _ASKING
        outcome = CommandOutcome.UNREACHABLE if nothing_done else CommandOutcome.UNKNOWN
        return _Answer(node.namenode, outcome, None, str(silence))
    right = action == "get" or told.value is (action == "enter")
    text = await _waits_for(node, seconds) if told.value and action != "enter" else ""
    text = f"{'on' if told.value else 'off'}{text and f': {text}'}"
    outcome = CommandOutcome.DONE if right else CommandOutcome.FAILED
    return _Answer(node.namenode, outcome, told.value, text)


async def _waits_for(node: NameNodeAddress, seconds: float) -> str:
    """Return what its safe mode waits for, empty where its page does not say."""
    with suppress(OSError, ValueError):
        async with asyncio.timeout(seconds):
            files = files_view((await fetch(node.http)).get("files"))
            return (files and files.safe_mode) or ""
    return ""


def _ending(action: str, again: str, answers: Sequence[_Answer]) -> Ending:
    outcomes = {one.outcome for one in answers}
    outcome = next(one for one in _CODES if one in outcomes)
    answered = outcomes & {CommandOutcome.DONE, CommandOutcome.FAILED}
    if action not in _ASKING and answered and outcome not in {*answered, CommandOutcome.UNKNOWN}:
        outcome = CommandOutcome.FAILED  # something was changed
    hints = {
        CommandOutcome.DONE: "",
        CommandOutcome.UNKNOWN: again.replace(f" {action}", " get", 1),
        CommandOutcome.UNAUTHORISED: f"as the user that runs the NameNodes: {again}",
    }
    if action == "leave":
        hints[CommandOutcome.REFUSED] = "nnha fsck /, then nnha safemode forceExit"
    where = {True: "on at", False: "off at", None: "not known at"}
    names = {on: ", ".join(one.namenode for one in answers if one.on is on) for on in where}
    message = ", ".join(f"{where[on]} {some}" for on, some in names.items() if some)
    reasons = tuple(Reason(one.namenode, one.text, fit=one.on is False) for one in answers)
    command = f"safemode {action}"
    hint, found = hints.get(outcome, "nnha status"), f"safe mode is {message}"
    return Ending(command, outcome, _CODES[outcome], found, hint=hint, reasons=reasons)
