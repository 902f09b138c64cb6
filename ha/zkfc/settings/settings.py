"""What a failover controller must know, read once and checked once."""

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
"""At least this number of probes begin while one may go unanswered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpSettings:
    """How long the whole dump may take (0: none is taken), and where it goes (None: the log)."""

    timeout_seconds: float = 20.0
    directory: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FencingPlan:
    """How one target is fenced, by the target's own configuration.

    See docs/reference/fencing.md#fencing-methods-as-text.
    """

    methods: tuple[MethodSpec, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    method_timeout_seconds: float = 30.0
    total_timeout_seconds: float = 60.0
    ssh: SshSettings = field(default_factory=SshSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkfcSettings:
    """One controller's surroundings and limits."""

    own: NameNodeAddress
    others: tuple[NameNodeAddress, ...]
    zookeeper: ZooKeeperSettings
    health: HealthSettings
    pid_file: Path | None = None
    """Of the local NameNode, where its process is watched."""
    thread_dump: DumpSettings = field(default_factory=DumpSettings)
    session_dir: Path | None = None
    """Where our session is kept for a controller after us; None: the default folder."""
    fencing: Mapping[str, FencingPlan] = field(default_factory=lambda: {"": FencingPlan()})
    """By NameNode id; the empty id is for a target that the configuration does not know."""
    bind_host: str
    new_active_timeout_seconds: float = 60.0
    graceful_fence_timeout_seconds: float = 5.0
    polite_answer_seconds: float = 0.25
    """A dead host drops packets, and a stopped process never answers: neither may cost more than
    this, for a connection and again for a first answer, before the methods run."""
    step_down_after_seconds: float = 0.0
    """How long an active may serve without ZooKeeper; 0: for ever."""
    max_cede_seconds: float = 600.0
    """For how long others may have us stay out of the election, by one request."""
    max_requests_a_minute: int = 0
    """How often one user may ask for a hand-over, and as often to stand back; 0: no limit."""
    end_superseded: bool = True
    """End our NameNode's process where it hangs after another has become active."""
    back_off: BackOff = field(default_factory=BackOff)
    rank: Rank = field(default_factory=Rank)
    flapping: FlapSettings = field(default_factory=FlapSettings)
    witness: WitnessSettings = field(default_factory=WitnessSettings)
    user: str = field(default_factory=own_user)
    administrators: AccessList = NOBODY
    """The users that may ask us for something in addition to our own."""
    protocol_users: AccessList = AccessList(everybody=True)
    """Whom the service-level list lets speak to us at all."""
    hand_over_on_stop: bool = True
    stop_timeout_seconds: float = 10.0
    """How long a controller that is to stop tries to hand over."""

    def plan_for(self, namenode: str) -> FencingPlan:
        """Return the plan for this target."""
        return self.fencing.get(namenode) or self.fencing[""]

    def address_of(self, namenode: str) -> NameNodeAddress | None:
        """Return where the configuration says that this NameNode is."""
        return next((one for one in (self.own, *self.others) if one.namenode == namenode), None)


def automatic_failover(conf: Configuration, nameservice: str) -> bool:
    """Return whether dfs.ha.automatic-failover.enabled is set for the nameservice."""
    return conf.get(keys.AUTO_FAILOVER, nameservice=nameservice)


def fencing_plans(conf: Configuration, settings: ZkfcSettings) -> Mapping[str, FencingPlan]:
    """Return every target's plan.

    Raises ConfigurationError where a peer has none, or naming the line that cannot be parsed.
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
    """Return one target's plan; raise ConfigurationError naming the line that cannot be parsed."""
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
    """Read the local controller's settings, but for fencing, whose check comes later (3.2).

    Raises ConfigurationError, saying what to do.
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
        # An operator that wants silence noticed within this limit does not want a whole interval
        # more.
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
