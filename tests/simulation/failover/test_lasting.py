"""What must not last is timed from the look at which it began, and anew after each gap."""

from tests.simulation.failover.lasting import Lasting


def test_it_lasts_from_the_first_look_of_an_unbroken_row() -> None:
    seen = Lasting()
    looks = [(1.0, False), (2.0, True), (5.0, True), (9.0, True), (10.0, False), (11.0, True)]
    looks += [(13.0, True)]
    told = [seen.seconds(now, holds=holds) for now, holds in looks]
    assert told == [None, None, 3.0, 7.0, None, None, 2.0]
