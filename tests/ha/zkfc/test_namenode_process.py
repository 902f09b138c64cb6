"""Which process of our NameNode is watched in a term, and when it is handed on."""

from dataclasses import dataclass

from ha.elector.events import LockGone
from ha.elector.model import Link, Role, SessionNumber
from ha.elector.state import ElectorState
from ha.service.model import ProcessIdentity
from ha.zkfc.surroundings.process_watch import Watched
from ha.zkfc.surroundings.surroundings import Surroundings
from ha.zkfc.takeover.namenode_process import NameNodeProcess

ONE, OTHER = ProcessIdentity(7, 70, "here"), ProcessIdentity(8, 80, "here")
ACTIVE = ElectorState(session=SessionNumber(1), role=Role.ACTIVE, link=Link.CONNECTED)
STANDBY = ElectorState(session=SessionNumber(1), role=Role.STANDBY, link=Link.CONNECTED)


@dataclass
class Process:
    """One process that is here."""

    is_over: bool = False

    def ended(self, *, wait_millis: int = 0) -> bool:
        return self.is_over

    def kill(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Scene:
    """Watches a NameNode's processes, all of which are ``here`` or on another machine."""

    def __init__(self, *, here: bool = True) -> None:
        self.process = Process()
        self.here = here
        self.watched: list[ProcessIdentity] = []
        self.left: list[ProcessIdentity] = []
        around = Surroundings(watch=self.watch)
        self.namenode = NameNodeProcess(around, on_term_end=self.leave)

    def watch(self, process: ProcessIdentity) -> Process | None:
        self.watched.append(process)
        return self.process if self.here else None

    def leave(self, process: ProcessIdentity, watched: Watched) -> None:
        assert watched is self.process
        self.left.append(process)

    def step(self, after: ElectorState) -> None:
        self.namenode.observe_step(LockGone(SessionNumber(1)), ACTIVE, after)


def test_a_process_is_watched_once_and_handed_on_when_its_term_is_over() -> None:
    scene = Scene()
    for _ in range(2):
        scene.namenode.watch(ONE)
        scene.step(ACTIVE)
    assert (scene.watched, scene.left, scene.namenode.watching) == ([ONE], [], True)
    assert scene.namenode.describe_end() == ""
    scene.process.is_over = True
    assert scene.namenode.describe_end().startswith("pid 7, started at tick 70, seen ended 20")
    for _ in range(2):
        scene.step(STANDBY)
    assert (scene.left, scene.namenode.watching, scene.namenode.describe_end()) == (
        [ONE],
        False,
        "",
    )
    scene.namenode.watch(OTHER)
    assert scene.watched == [ONE, OTHER], "the next term's"


def test_of_two_that_say_so_in_one_term_none_is_watched_any_more() -> None:
    for second in (OTHER, None):
        scene = Scene()
        scene.namenode.watch(None)
        scene.namenode.watch(ONE)
        scene.namenode.watch(second)
        assert (scene.left, scene.namenode.watching) == ([ONE], False)
        scene.namenode.watch(ONE)
        assert scene.watched == [ONE], "nothing is known for the rest of the term"
        scene.step(STANDBY)
        scene.namenode.watch(OTHER)
        assert scene.namenode.watching


def test_a_process_on_another_machine_is_neither_watched_nor_handed_on() -> None:
    scene = Scene(here=False)
    scene.namenode.watch(ONE)
    scene.process.is_over = True
    assert (scene.namenode.watching, scene.namenode.describe_end()) == (False, "")
    scene.step(STANDBY)
    assert scene.left == []
