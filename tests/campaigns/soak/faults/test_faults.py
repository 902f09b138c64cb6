"""The drawn faults: the same for the same seed, of every kind, and with real names at last."""

from collections import Counter

from tests.campaigns.soak.faults import faults as faults_faults
from tests.campaigns.soak.faults.draw import ALL_KINDS, KINDS, Draw
from tests.campaigns.soak.faults.hosts import CLIENTS, DATANODES, PROCESSES, READERS

ROLES = {
    faults_faults.ACTIVE: "nn2",
    **dict(zip(faults_faults.STANDBYS, ("nn1", "nn3"), strict=True)),
}


def test_a_seed_gives_the_same_faults_again() -> None:
    assert Draw(7, 200).lines() == Draw(7, 200).lines()
    assert Draw(7, 200).lines() != Draw(8, 200).lines()


def test_as_many_faults_are_drawn_as_were_asked_for() -> None:
    for count in (1, 2, 40, 500):
        assert sum(map(len, Draw(3, count).rounds())) == count


def test_a_limit_shortens_faults_and_changes_nothing_else() -> None:
    for long, short in zip(Draw(5, 300).rounds(), Draw(5, 300, 4).rounds(), strict=True):
        assert [fault.what for fault in long] == [fault.what for fault in short]
        assert all(fault.seconds <= 4 and fault.after_seconds <= 4 for fault in short)


def test_every_kind_is_drawn() -> None:
    drawn = [fault for faults in Draw(1, 2000).rounds() for fault in faults]
    kinds = Counter(fault.kind for fault in drawn)
    for kind in (
        "kill active", "kill zookeeper x2", "kill journalnode x3", "freeze active+zkfc",
        "freeze zookeeper x3", "cut host", "cut halves", "cut one-way", "cut bridge", "cut pair",
        "cut bridge flapping", "cut deposed", "loss", "narrow link", "full disk", "read-only disk",
        "slow disk",
        "wiped journalnode", "clock", "switchover", "pause", "drain", "rolling restart", "revenant",
        "revenant, forgetful journals", "revenant, cut off", "cut unheard",
    ):  # fmt: skip
        assert kinds[kind], kind
    assert not [kind for kind in kinds if "datanode" in kind], "none of them runs by default"
    freezes = [fault.seconds for fault in drawn if fault.kind.startswith("freeze")]
    assert min(freezes) < 0.3
    assert max(freezes) > 40


def test_where_clients_write_files_datanodes_are_struck_and_one_lives() -> None:
    drawn = [fault for faults in Draw(1, 2000, only=ALL_KINDS).rounds() for fault in faults]
    kinds = Counter(fault.kind for fault in drawn)
    for kind in (
        "kill datanode", "kill datanode x2", "kill active+datanode", "freeze datanode",
        "freeze datanode x2", "cut datanode",
    ):  # fmt: skip
        assert kinds[kind], kind
    for fault in drawn:
        if isinstance(fault.what, faults_faults.Kill | faults_faults.Freeze):
            assert not set(DATANODES) <= set(fault.what.processes)


def test_names_are_real_when_a_fault_strikes() -> None:
    known = {*PROCESSES, CLIENTS, READERS}
    for faults in Draw(2, 500).rounds():
        for fault in faults:
            match faults_faults.named(fault.what, ROLES):
                case faults_faults.Kill(processes):
                    assert known.issuperset(processes)
                case faults_faults.Cut(ways):
                    assert ways
                    assert all(known.issuperset(way) for way in ways)
                case faults_faults.Switchover(target):
                    assert target in ("nn1", "nn3")
                case _:
                    pass
    assert faults_faults.named(
        faults_faults.Kill((faults_faults.ACTIVE, "zkfc-active", "jn1")), ROLES
    ) == faults_faults.Kill(("nn2", "zkfc-nn2", "jn1"))


def test_a_bridge_sees_both_sides() -> None:
    cuts = [
        fault.what
        for faults in Draw(4, 1000).rounds()
        for fault in faults
        if isinstance(fault.what, faults_faults.Cut) and fault.what.shape == "bridge"
    ]
    assert cuts
    for cut in cuts:
        touched = {host for way in cut.ways for host in way}
        assert len(touched) == len(faults_faults.ALL) - 1


def test_a_draw_may_be_limited_to_some_kinds() -> None:
    for only in KINDS:
        assert sum(map(len, Draw(1, 9, only=(only,)).rounds())) == 9
    kinds = {fault.kind for faults in Draw(1, 50, only=("deposed",)).rounds() for fault in faults}
    assert kinds == {"cut deposed", "cut deposed flapping"}


def test_half_of_the_seeds_fence_by_login() -> None:
    assert 70 < sum(Draw(seed, 1).logs_in for seed in range(200)) < 130
