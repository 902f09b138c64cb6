"""What each haadmin command does, and the lines that it prints.

See docs/reference/operations.md#haadmin.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager

import click

from ha.cli.hadoop.direct_access import DirectAccess
from ha.cli.hadoop.java_address import java_host, java_name
from ha.cli.hadoop.manual_failover import FailoverFailed, Force, OutcomeUnknown, fail_over
from ha.cli.operate.handover import patience_seconds
from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import cluster as keys
from ha.conf.topology import NameNodeAddress, namenodes, nameservice_of
from ha.console.exit_codes import DONE, HADOOP_FAILURE, OUTCOME_UNKNOWN
from ha.console.options import confirmed
from ha.record import dataclass
from ha.service import errors
from ha.service.client import ServiceClient, state_of
from ha.service.model import RequestSource, ServiceState
from ha.service.zkfc_client import ZkfcClient

OTHERS_STATUS_SECONDS = 5.0
"""Hadoop's limit for asking each other NameNode before one is made active by hand."""
TRANSITION_SECONDS = 600.0
"""Hadoop waits for ever here; nothing of ours does."""


class IllegalArgument(Exception):
    """Hadoop's IllegalArgumentException: the request makes no sense for this cluster."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One command with what it needs.  The nameservice is found only when it is used."""

    configuration: Configuration
    nameservice: str | None
    arguments: tuple[str, ...]
    flags: frozenset[str]

    def nodes(self) -> tuple[NameNodeAddress, ...]:
        """Return all NameNodes of the nameservice; raise ConfigurationError."""
        return namenodes(self.configuration, self.service())

    def service(self) -> str:
        """Return the nameservice: that of -ns, or else the one that is configured."""
        if self.nameservice is not None:
            return self.nameservice
        try:
            return nameservice_of(self.configuration)
        except ConfigurationError as error:
            raise ConfigurationError(f"{error} (haadmin: -ns <nameserviceId>)") from error

    def node(self, name: str) -> NameNodeAddress:
        """Return the NameNode with an id; raise IllegalArgument if there is none."""
        unable = f"Unable to determine service address for namenode '{name}'"
        service = self.service()
        try:
            nodes = self.nodes()
        except ConfigurationError as error:
            raise IllegalArgument(f"{unable}: {error}") from error
        for one in nodes:
            if one.namenode == name:
                return one
        raise IllegalArgument(
            f"{unable} ({keys.NAMENODES.name}.{service} lists "
            f"{', '.join(one.namenode for one in nodes)})"
        )

    @property
    def check_seconds(self) -> float:
        """The limit of a call that changes nothing."""
        return self.configuration.get(keys.CLI_CHECK_TIMEOUT)

    @property
    def automatic(self) -> bool:
        """Whether ZKFCs decide who is active."""
        return self.configuration.get(keys.AUTO_FAILOVER, nameservice=self.service())


Action = Callable[[Asked], Coroutine[None, None, int]]


async def service_state(asked: Asked) -> int:
    """Run -getServiceState: print one line, the state in lower case."""
    address = asked.node(asked.arguments[0]).service
    click.echo(await state_of(address, deadline_seconds=asked.check_seconds))
    return DONE


async def all_service_states(asked: Asked) -> int:
    """Run -getAllServiceState: a line for each NameNode; 0 even without some answers, as Hadoop.

    Unlike Hadoop all are asked at once, so that a dead one does not hold up the others.
    """
    nodes = asked.nodes()
    asking = (state_of(node.service, deadline_seconds=asked.check_seconds) for node in nodes)
    answers = await asyncio.gather(*asking, return_exceptions=True)
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, BaseException) and not isinstance(answer, errors.ServiceError):
            raise answer
        shown = (
            f"Failed to connect: {answer}" if isinstance(answer, errors.ServiceError) else answer
        )
        named = f"{await java_host(node.service.host)}:{node.service.port}"
        click.echo(f"{named:<50} {shown!s:<10}")
    return DONE


async def check_health(asked: Asked) -> int:
    """Run -checkHealth: print nothing when it is well, else the reason on stderr."""
    try:
        address, seconds = asked.node(asked.arguments[0]).service, asked.check_seconds
        async with ServiceClient.connected(address, deadline_seconds=seconds) as client:
            await client.monitor_health(deadline_seconds=seconds)
    except errors.HealthCheckFailed as error:
        return _end(f"Health check failed: {error}")
    return DONE


async def failover(asked: Asked) -> int:
    """Run -failover: ask the second node's ZKFC to make its NameNode the active one.

    The first node is only looked up, as in Hadoop: the active steps back, whichever it is.  Without
    automatic failover the two NameNodes are asked directly.

    See docs/reference/fencing.md#failover-by-hand.
    """
    first, second = (asked.node(name) for name in asked.arguments)
    if not asked.automatic:
        return await _failover_by_hand(asked, first, second)
    if asked.flags & {"forcefence", "forceactive"}:
        return _end(
            "forcefence and forceactive flags not supported with auto-failover enabled. "
            "Nothing was changed.",
        )
    return await _graceful_failover(asked, second)


async def _failover_by_hand(asked: Asked, old: NameNodeAddress, new: NameNodeAddress) -> int:
    hands = DirectAccess(asked.configuration, old.nameservice, asked.check_seconds)
    if not hands.plan(old).methods:
        raise IllegalArgument(
            f"failover requires a fencer: {keys.FENCING_METHODS.name} is not set for {old.namenode}"
        )
    force = Force(fence="forcefence" in asked.flags, active="forceactive" in asked.flags)
    try:
        await fail_over(old, new, force, hands)
    except FailoverFailed as failure:
        return _end(f"Failover failed: {failure}.")
    except OutcomeUnknown as unknown:
        return _end(
            f"Failover outcome unknown: {unknown}. Look with: haadmin -getAllServiceState.",
            OUTCOME_UNKNOWN,
        )
    click.echo(f"Failover from {old.namenode} to {new.namenode} successful")
    return DONE


async def to_observer(asked: Asked) -> int:
    """Refuse -transitionToObserver, because our NameNode has no such role."""
    asked.node(asked.arguments[0])
    return _end(
        "transitionToObserver: nnha's NameNode cannot be an observer. Nothing was changed.",
    )


async def to_active(asked: Asked) -> int:
    """Run -transitionToActive: by hand, and only if no other NameNode is or may be active."""
    target = asked.node(asked.arguments[0])
    source = await _source(asked, target)
    if source is None:
        return HADOOP_FAILURE
    if "forceactive" not in asked.flags:
        for other in asked.nodes():
            if other != target and not await _surely_not_active(other):
                return HADOOP_FAILURE
    return await _change(
        asked,
        target,
        lambda client: client.transition_to_active(source, deadline_seconds=TRANSITION_SECONDS),
    )


async def to_standby(asked: Asked) -> int:
    """Run -transitionToStandby by hand."""
    target = asked.node(asked.arguments[0])
    source = await _source(asked, target)
    if source is None:
        return HADOOP_FAILURE
    return await _change(
        asked,
        target,
        lambda client: client.transition_to_standby(source, deadline_seconds=TRANSITION_SECONDS),
    )


async def _change(
    asked: Asked, target: NameNodeAddress, ask: Callable[[ServiceClient], Awaitable[None]]
) -> int:
    """Have a NameNode change its role; without an answer the outcome is unknown."""
    try:
        seconds = asked.check_seconds
        async with ServiceClient.connected(target.service, deadline_seconds=seconds) as client:
            await ask(client)
    except errors.ServiceUnreachable as error:
        if not error.sent:
            raise
        return _end(
            f"Outcome unknown: {target.namenode} stopped answering ({error}); it may have done it, "
            f"or may still. Look with: haadmin -getServiceState {target.namenode}",
            OUTCOME_UNKNOWN,
        )
    return DONE


async def _graceful_failover(asked: Asked, target: NameNodeAddress) -> int:
    # Hadoop's client gives up before its server does, and reports a success as a failure.
    seconds = patience_seconds(asked.configuration)
    try:
        seconds_to_connect = asked.check_seconds
        async with (
            ZkfcClient.connected(target.zkfc, deadline_seconds=seconds_to_connect) as client,
            # On stderr, and only at a terminal: stdout is Hadoop's, byte for byte.
            _told_at_a_terminal(asked, target),
        ):
            await client.graceful_failover(deadline_seconds=seconds)
    except errors.ServiceFailed as error:
        return _end(f"Failover failed: {error}")
    except errors.ServiceUnreachable as error:
        if not error.sent:
            raise
        return await _after_silence(asked, target, error)
    click.echo(f"Failover to {await java_name(target.lifeline)} successful")
    return DONE


@asynccontextmanager
async def _told_at_a_terminal(asked: Asked, target: NameNodeAddress) -> AsyncIterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    # Here and not above: its HTTP client takes longer to load than most of these commands last.
    from ha.cli.operate.progress import on_stderr, progress

    async with progress(asked.nodes(), target.namenode, on_stderr()):
        yield


async def _after_silence(asked: Asked, target: NameNodeAddress, error: errors.ServiceError) -> int:
    """Look whether an unanswered request was carried out, and report no more than what was seen."""
    try:
        state = await state_of(target.service, deadline_seconds=OTHERS_STATUS_SECONDS)
    except errors.ServiceError:
        state = None
    if state is ServiceState.ACTIVE:
        click.echo(f"Failover to {await java_name(target.lifeline)} successful")
        return DONE
    seen = f"is {state} at this moment" if state else "does not answer either"
    return _end(
        f"Failover outcome unknown: the failover controller of {target.namenode} stopped "
        f"answering ({error}). {target.namenode} {seen}; the failover may still happen. "
        "Look with: haadmin -getAllServiceState, or nnha status.",
        OUTCOME_UNKNOWN,
    )


async def _source(asked: Asked, target: NameNodeAddress) -> RequestSource | None:
    """Return as which source to ask; None if the request must not be made, after saying why."""
    forced = "forcemanual" in asked.flags
    if not asked.automatic:
        return RequestSource.USER
    if not forced:
        click.echo(
            f"Automatic failover is enabled for {await java_name(target.lifeline)}\n"
            "Refusing to manually manage HA state, since it may cause\n"
            "a split-brain scenario or other incorrect state.\n"
            "Use -failover instead. If you are very sure you know what you are doing,\n"
            "please specify the --forcemanual flag.",
            err=True,
        )
        return None
    return RequestSource.USER_FORCED if _confirmed() else None


def _end(message: str, code: int = HADOOP_FAILURE) -> int:
    """Show on stderr what went wrong, and return the exit code for it."""
    click.echo(message, err=True)
    return code


def _confirmed() -> bool:
    click.echo(
        "You have specified the --forcemanual flag. It goes past the failover controllers, which\n"
        "may undo what you do, and two active NameNodes can corrupt the namespace for good.\n"
        "It is better to stop the controllers first, or to use -failover.\n\n"
        "You may abort safely by answering 'n' or hitting ^C now.\n",
        err=True,
    )
    return confirmed("Are you sure you want to continue? (Y or N) ")


async def _surely_not_active(node: NameNodeAddress) -> bool:
    try:
        state = await state_of(node.service, deadline_seconds=OTHERS_STATUS_SECONDS)
    except errors.ServiceError as error:
        click.echo(
            f"Unexpected error occurred while asking {await java_name(node.lifeline)}: {error}\n"
            "It may be active. Nothing was changed. --forceactive goes on without asking.",
            err=True,
        )
        return False
    if state is ServiceState.ACTIVE:
        click.echo(
            f"transitionToActive: Node {node.namenode} is already active. Nothing was changed.",
            err=True,
        )
        return False
    return True
