"""Reads and checks the settings of a failover controller."""

from collections.abc import Mapping
from pathlib import Path

from fencing.model import BadSpec, MethodSpec, method_names
from fencing.spec import parse_methods
from fencing.ssh_settings import HostKeys, SshSettings
from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import candidate as keys_candidate
from ha.conf.keys import cluster as keys
from ha.conf.keys import zookeeper as keys_zookeeper
from ha.conf.keys.security import AUTHORIZATION
from ha.conf.listening import required_door
from ha.conf.own_user import own_user
from ha.conf.topology import NameNodeAddress, local_namenode, namenodes
from ha.elector.zookeeper.settings import ZooKeeperSettings, zookeeper_settings
from ha.health.core import HealthSettings
from ha.record import dataclass, field
from ha.security.lists.access_list import NOBODY, AccessList
from ha.zkfc.candidacy.eligibility import Rank
from ha.zkfc.candidacy.flapping import FlapSettings
from ha.zkfc.candidacy.state import BackOff
from ha.zkfc.witness.core import WitnessSettings

PROBES_PER_LIMIT = 8
"""At least this number of probes begins within the RPC timeout of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpSettings:
    """The limit for a thread dump (0 turns it off), and its directory (None: the log)."""

    timeout_seconds: float = 20.0
    directory: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FencingPlan:
    """How to fence one NameNode, by the keys that are configured for it.

    See docs/reference/fencing.md#fencing-methods-as-text.
    """

    methods: tuple[MethodSpec, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    method_timeout_seconds: float = 30.0
    total_timeout_seconds: float = 60.0
    ssh: SshSettings = field(default_factory=SshSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkfcSettings:
    """The settings of one controller."""

    own: NameNodeAddress
    others: tuple[NameNodeAddress, ...]
    zookeeper: ZooKeeperSettings
    health: HealthSettings
    pid_file: Path | None = None
    """The local NameNode's pid file; None: its process is not watched."""
    thread_dump: DumpSettings = field(default_factory=DumpSettings)
    session_dir: Path | None = None
    """The folder of the file with our ZooKeeper session; None: the default one."""
    fencing: Mapping[str, FencingPlan] = field(default_factory=lambda: {"": FencingPlan()})
    """By NameNode id; the empty id is for a target that is not configured."""
    bind_host: str
    new_active_timeout_seconds: float = 60.0
    graceful_fence_timeout_seconds: float = 5.0
    polite_answer_seconds: float = 0.25
    """The limit for a connection to the former active, and again for its first answer, before the
    fencing methods run: a dead host or a stopped process never answers."""
    step_down_after_seconds: float = 0.0
    """How long an active may serve without ZooKeeper; 0: for ever."""
    max_cede_seconds: float = 600.0
    """The longest time for which one cedeActive may make us leave the election."""
    max_requests_a_minute: int = 0
    """The limit for gracefulFailover, and for cedeActive, of one user; 0: no limit."""
    end_superseded: bool = True
    """Whether to kill our NameNode's process if it hangs after a peer became active."""
    back_off: BackOff = field(default_factory=BackOff)
    rank: Rank = field(default_factory=Rank)
    flapping: FlapSettings = field(default_factory=FlapSettings)
    witness: WitnessSettings = field(default_factory=WitnessSettings)
    user: str = field(default_factory=own_user)
    administrators: AccessList = NOBODY
    """The users that may call ZKFCProtocol, in addition to our own."""
    protocol_users: AccessList = AccessList(everybody=True)
    """The users that the service-level list admits to ZKFCProtocol."""
    hand_over_on_stop: bool = True
    stop_timeout_seconds: float = 10.0
    """How long a stopping controller tries to hand over."""

    def plan_for(self, namenode: str) -> FencingPlan:
        """Return the fencing plan for this NameNode id."""
        return self.fencing.get(namenode) or self.fencing[""]

    def address_of(self, namenode: str) -> NameNodeAddress | None:
        """Return the configured address of this NameNode; None if it has none."""
        return next((one for one in (self.own, *self.others) if one.namenode == namenode), None)


def automatic_failover(conf: Configuration, nameservice: str) -> bool:
    """Return whether dfs.ha.automatic-failover.enabled is set for the nameservice."""
    return conf.get(keys.AUTO_FAILOVER, nameservice=nameservice)


def fencing_plans(conf: Configuration, settings: ZkfcSettings) -> Mapping[str, FencingPlan]:
    """Return the fencing plans by NameNode id.

    Raises ConfigurationError if a peer has none, or a line cannot be parsed.
    """
    nameservice = settings.own.nameservice
    names = [one.namenode for one in (settings.own, *settings.others)]
    plans = {name: fencing_plan(conf, nameservice, name) for name in names}
    for peer in settings.others:
        if not plans[peer.namenode].methods:
            raise ConfigurationError(
                f"{keys.FENCING_METHODS.name} is not set for {nameservice}.{peer.namenode}: "
                f"nobody could be made harmless before a takeover; set it to one method a line, "
                f"{method_names()}"
            )
    return {"": fencing_plan(conf, nameservice, None), **plans}


def fencing_plan(conf: Configuration, nameservice: str, namenode: str | None) -> FencingPlan:
    """Return one NameNode's fencing plan; raise ConfigurationError if a line cannot be parsed."""
    scope = {"nameservice": nameservice, "namenode": namenode}
    try:
        methods = parse_methods(conf.get(keys.FENCING_METHODS, **scope))
    except BadSpec as failure:
        raise ConfigurationError(f"{keys.FENCING_METHODS.name}: {failure}") from failure
    return FencingPlan(
        methods=methods,
        environment=conf.promoted(nameservice, namenode),
        method_timeout_seconds=conf.get(keys.FENCING_METHOD_TIMEOUT, **scope),
        total_timeout_seconds=conf.get(keys.FENCING_TOTAL_TIMEOUT, **scope),
        ssh=_ssh(conf),
    )


def _ssh(conf: Configuration) -> SshSettings:
    policy = conf.get(keys.SSH_HOST_KEYS)
    if policy not in set(HostKeys):
        raise ConfigurationError(
            f"{keys.SSH_HOST_KEYS.name} is {policy!r}; write one of {', '.join(HostKeys)}"
        )
    passphrase = conf.get(keys.SSH_PASSPHRASE_FILE)
    return SshSettings(
        key_files=tuple(Path(name) for name in conf.get(keys.SSH_KEY_FILES)),
        known_hosts=Path(conf.get(keys.SSH_KNOWN_HOSTS)),
        host_keys=HostKeys(policy),
        use_agent=conf.get(keys.SSH_AGENT),
        passphrase_file=None if passphrase is None else Path(passphrase),
        connect_timeout_seconds=conf.get(keys.SSH_CONNECT_TIMEOUT),
        command_timeout_seconds=conf.get(keys.SSH_COMMAND_TIMEOUT),
    )


def zkfc_settings(conf: Configuration) -> ZkfcSettings:
    """Read the local controller's settings without the fencing plans; raise ConfigurationError.

    ``fencing_plans`` reads those later, because they have their own exit code.
    """
    own = local_namenode(conf)
    scope = {"nameservice": own.nameservice, "namenode": own.namenode}
    others = tuple(one for one in namenodes(conf, own.nameservice) if one.namenode != own.namenode)
    return ZkfcSettings(
        own=own,
        others=others,
        zookeeper=zookeeper_settings(conf, **scope),
        health=_health(conf, own),
        pid_file=_path(conf.get(keys_candidate.HEALTH_PID_FILE, **scope)),
        thread_dump=DumpSettings(
            timeout_seconds=conf.get(keys.ZKFC_THREAD_DUMP_TIMEOUT),
            directory=_path(conf.get(keys_candidate.THREAD_DUMP_DIR, **scope)),
        ),
        session_dir=_path(conf.get(keys_candidate.SESSION_DIR, **scope)),
        bind_host=required_door(conf, keys.ZKFC_PORT, **scope).host,
        new_active_timeout_seconds=conf.get(keys.NEW_ACTIVE_TIMEOUT),
        graceful_fence_timeout_seconds=conf.get(keys.GRACEFUL_FENCE_TIMEOUT),
        polite_answer_seconds=conf.get(keys.POLITE_ANSWER_TIMEOUT),
        step_down_after_seconds=conf.get(keys_zookeeper.STEP_DOWN_AFTER, **scope),
        max_cede_seconds=conf.get(keys_candidate.MAX_CEDE, **scope),
        max_requests_a_minute=conf.get(keys_candidate.MAX_REQUESTS, **scope),
        end_superseded=conf.get(keys_candidate.END_SUPERSEDED, **scope),
        rank=Rank(
            nofailover=conf.get(keys_candidate.NO_FAILOVER, **scope),
            priority=conf.get(keys_candidate.PRIORITY, **scope),
            priority_delay_seconds=conf.get(keys_candidate.PRIORITY_DELAY, **scope),
            unready_delay_seconds=conf.get(keys_candidate.UNREADY_DELAY, **scope),
            failback_after_seconds=conf.get(keys_candidate.FAILBACK_AFTER, **scope),
        ),
        flapping=FlapSettings(
            failovers=conf.get(keys_candidate.FLAP_FAILOVERS, **scope),
            window_seconds=conf.get(keys_candidate.FLAP_WINDOW, **scope),
            delay_seconds=conf.get(keys_candidate.FLAP_DELAY, **scope),
        ),
        witness=WitnessSettings(
            enabled=conf.get(keys_candidate.WITNESSED_TAKEOVER, **scope),
            silence_seconds=conf.get(keys_candidate.WITNESSED_SILENCE, **scope),
        ),
        administrators=AccessList.parse(conf.get(keys.ADMINISTRATORS)),
        protocol_users=AccessList.parse(
            conf.get(keys.ZKFC_PROTOCOL_ACL) if conf.get(AUTHORIZATION) else "*"
        ),
        hand_over_on_stop=conf.get(keys.ZKFC_HAND_OVER_ON_STOP, **scope),
        stop_timeout_seconds=conf.get(keys.ZKFC_STOP_TIMEOUT, **scope),
    )


def _health(conf: Configuration, own: NameNodeAddress) -> HealthSettings:
    try:
        return _health_settings(conf, {"nameservice": own.nameservice, "namenode": own.namenode})
    except ValueError as failure:
        raise ConfigurationError(
            f"{failure}; see nnha.zkfc.health.* and ha.health-monitor.*"
        ) from failure


def _health_settings(conf: Configuration, scope: Mapping[str, str]) -> HealthSettings:
    limit = conf.get(keys.HEALTH_RPC_TIMEOUT)
    return HealthSettings(
        # Silence must be noticed within the RPC timeout, not a whole check interval after it.
        check_interval_seconds=min(conf.get(keys.HEALTH_CHECK_INTERVAL), limit / PROBES_PER_LIMIT),
        retry_interval_seconds=max(
            conf.get(keys.HEALTH_CONNECT_RETRY), conf.get(keys.HEALTH_SLEEP_AFTER_DISCONNECT)
        ),
        rpc_timeout_seconds=limit,
        refusals=conf.get(keys.HEALTH_REFUSALS, **scope),
        refusals_of=conf.get(keys_candidate.HEALTH_REFUSALS_OF, **scope),
        timeouts=conf.get(keys.HEALTH_TIMEOUTS, **scope),
        timeouts_of=conf.get(keys_candidate.HEALTH_TIMEOUTS_OF, **scope),
    )


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text).expanduser()
