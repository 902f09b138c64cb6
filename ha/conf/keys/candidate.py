"""The keys of a candidate: how its health is judged, and when it joins the election."""

from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import duration, flag, optional_text, whole

_NN = Scope.NAMENODE
_s = duration("s")

# --- health ----------------------------------------------------------------------------------
HEALTH_REFUSALS_OF = Key(
    "nnha.zkfc.health.refusals-of",
    whole(at_least=0),
    "0",
    _NN,
    "the newest probes among which refusals are counted; 0: as many as refusals, in a row",
)
HEALTH_TIMEOUTS_OF = Key(
    "nnha.zkfc.health.timeouts-of",
    whole(at_least=0),
    "0",
    _NN,
    "the newest probes among which timeouts are counted; 0: as many as timeouts, in a row",
)
HEALTH_PID_FILE = Key(
    "nnha.zkfc.health.pid-file",
    optional_text,
    "",
    _NN,
    "the local NameNode's pid file; the end of its process is then noticed at once",
)
THREAD_DUMP_DIR = Key(
    "nnha.zkfc.thread-dump.dir",
    optional_text,
    "",
    _NN,
    "where thread dumps of an ill NameNode are kept, the newest 10; not set: in the log",
)

SESSION_DIR = Key(
    "nnha.zkfc.session.dir",
    optional_text,
    "",
    _NN,
    "where the controller's ZooKeeper session is kept for its next start, if its whole service is "
    "killed; not set: systemd's RUNTIME_DIRECTORY, else a folder of this user in /dev/shm",
)

END_SUPERSEDED = Key(
    "nnha.zkfc.end-superseded",
    flag,
    "true",
    _NN,
    "end the local NameNode's process if it hangs after another NameNode has become active, so "
    "that its clients do not wait in their connections",
)

MAX_CEDE = Key(
    "nnha.zkfc.max-cede",
    duration("s", zero=False),
    "10m",
    _NN,
    "the longest time for which anybody may have this NameNode's controller stay out of the "
    "election; who asks for more gets this",
)

MAX_REQUESTS = Key(
    "nnha.zkfc.max-requests-per-minute",
    whole(at_least=0),
    "10",
    _NN,
    "how often one user may ask this controller for a hand-over, and as often to stand back; 0: "
    "as often as it likes",
)

# --- rank ------------------------------------------------------------------------------------
NO_FAILOVER = Key(
    "nnha.candidate.nofailover", flag, "false", _NN, "never make this NameNode active by itself"
)
PRIORITY = Key(
    "nnha.candidate.priority",
    whole(at_least=0, at_most=1000000),
    "100",
    _NN,
    "of two NameNodes that could become active, the one with the higher number does",
)
PRIORITY_DELAY = Key(
    "nnha.candidate.priority-delay",
    _s,
    "2s",
    _NN,
    "how long the lock may be free until a NameNode of lower rank takes it all the same",
)
UNREADY_DELAY = Key(
    "nnha.candidate.unready-delay",
    _s,
    "5s",
    _NN,
    "how long there must be no ready peer until a NameNode that is not ready (safe mode) stands",
)
FAILBACK_AFTER = Key(
    "nnha.candidate.failback-after",
    _s,
    "0s",
    _NN,
    "how long this NameNode must be a fit standby behind an active of lower priority until it "
    "takes the role back by a hand-over; 0 = never",
)

# --- repeated failovers ----------------------------------------------------------------------
FLAP_FAILOVERS = Key(
    "nnha.zkfc.flap.failovers",
    whole(at_least=0),
    "3",
    _NN,
    "so many takeovers within the window are flapping: a slow or ill (not a dead) active is then "
    "kept for a while; 0 = never",
)
FLAP_WINDOW = Key(
    "nnha.zkfc.flap.window", duration("s", zero=False), "10m", _NN, "in which takeovers are counted"
)
FLAP_DELAY = Key(
    "nnha.zkfc.flap.delay",
    _s,
    "60s",
    _NN,
    "how long a flapping active may be slow or ill until it is given up",
)

# --- witnessed takeover ----------------------------------------------------------------------
WITNESSED_TAKEOVER = Key(
    "nnha.zkfc.witnessed-takeover.enabled",
    flag,
    "true",
    _NN,
    "remove the lock of an owner that does not answer, when a majority of JournalNodes tell that "
    "its NameNode, one of ours, is silent; else it lasts as long as its session",
)
WITNESSED_SILENCE = Key(
    "nnha.zkfc.witnessed-takeover.silence",
    duration("ms", zero=False),
    "1200ms",
    _NN,
    "how long the writer must be silent, and longer than its nnha.read-lease.duration",
)
