"""Actions on NameNodes, over HAServiceProtocol and by the configured fencing methods."""

from contextlib import AbstractAsyncContextManager
from typing import Final

from fencing.model import FencingReport
from ha.conf.configuration import Configuration
from ha.conf.keys import cluster as keys
from ha.conf.topology import NameNodeAddress
from ha.service.client import ServiceClient
from ha.service.model import RequestSource, ServiceStatus
from ha.zkfc.settings.settings import FencingPlan, fencing_plan
from ha.zkfc.takeover.planned_fence import fence_as_planned, target_at

TRANSITION_SECONDS: Final = 60.0
"""Hadoop's limit for the calls of a failover by hand."""


class DirectAccess:
    """The actions of ``haadmin -failover`` if no failover controllers run."""

    def __init__(
        self, configuration: Configuration, nameservice: str, check_seconds: float
    ) -> None:
        self._configuration = configuration
        self._nameservice = nameservice
        self._check_seconds = check_seconds

    def plan(self, node: NameNodeAddress) -> FencingPlan:
        """Return how that node is fenced, by its own configuration; raise ConfigurationError."""
        return fencing_plan(self._configuration, self._nameservice, node.namenode)

    async def status(self, node: NameNodeAddress) -> ServiceStatus:
        """Return a NameNode's state, and whether it could become active."""
        async with self._client(node) as client:
            return await client.status(deadline_seconds=TRANSITION_SECONDS)

    async def check_health(self, node: NameNodeAddress) -> None:
        """Return if the NameNode is healthy; raise if it is not."""
        async with self._client(node) as client:
            await client.monitor_health(deadline_seconds=TRANSITION_SECONDS)

    async def to_standby(self, node: NameNodeAddress) -> None:
        """Ask it to become standby, with the short limit of a polite fence."""
        seconds = self._configuration.get(keys.GRACEFUL_FENCE_TIMEOUT)
        async with self._client(node, seconds) as client:
            await client.transition_to_standby(RequestSource.USER, deadline_seconds=seconds)

    async def to_active(self, node: NameNodeAddress) -> None:
        """Ask it to serve."""
        async with self._client(node) as client:
            await client.transition_to_active(
                RequestSource.USER, deadline_seconds=TRANSITION_SECONDS
            )

    async def fence(self, node: NameNodeAddress) -> FencingReport:
        """Make it harmless by the configured methods."""
        return await fence_as_planned(self.plan(node), target_at(node))

    def _client(
        self, node: NameNodeAddress, seconds: float | None = None
    ) -> AbstractAsyncContextManager[ServiceClient]:
        limit = self._check_seconds if seconds is None else seconds
        return ServiceClient.connected(node.service, deadline_seconds=limit)
