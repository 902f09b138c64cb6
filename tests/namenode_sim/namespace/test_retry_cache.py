"""Answers are kept long enough, not forever, and only for calls that can be distinguished."""

from namenode_sim.edits.values import NO_RPC_IDS, RpcIds
from namenode_sim.namespace.retry_cache import DONE, RetryCache

CLIENT = b"0123456789abcdef"


def ids(call: int) -> RpcIds:
    return RpcIds(CLIENT, call)


def test_a_cache_that_is_switched_off_knows_nothing() -> None:
    cache = RetryCache(max_entries=0)
    cache.remember(ids(1), DONE)
    assert cache.find(ids(1)) is None
    assert len(cache) == 0


def test_an_answer_lives_through_its_expiry_time_and_not_through_two() -> None:
    cache = RetryCache(expiry_seconds=10)
    cache.advance(100.0)
    cache.remember(ids(1), DONE)
    for now in (105.0, 110.0, 119.9):
        cache.advance(now)
        assert (cache.find(ids(1)), len(cache)) == (DONE, 1), now
    cache.advance(120.0)
    assert (cache.find(ids(1)), len(cache)) == (None, 0)


def test_where_nothing_else_is_set_an_answer_lives_ten_minutes_and_not_twenty() -> None:
    cache = RetryCache()
    cache.advance(0.0)
    cache.remember(ids(1), DONE)
    cache.advance(600.0)
    assert cache.find(ids(1)) is DONE
    cache.advance(1200.0)
    assert cache.find(ids(1)) is None


def test_an_answer_from_a_replayed_log_counts_from_the_first_clock_reading() -> None:
    # A standby that reads no clock must not lose at once what it replayed before takeover.
    cache = RetryCache(expiry_seconds=10)
    cache.remember(ids(1), DONE)
    cache.advance(1_000_000.0)
    assert cache.find(ids(1)) is DONE
    cache.advance(1_000_010.0)
    assert cache.find(ids(1)) is DONE


def test_the_number_of_answers_is_bounded_and_the_newest_stay() -> None:
    cache = RetryCache(max_entries=10)
    for call in range(1000):
        cache.remember(ids(call), DONE)
        assert len(cache) <= 10
    assert all(cache.find(ids(call)) is DONE for call in range(995, 1000))
    assert cache.find(ids(0)) is None


def test_calls_that_nobody_can_repeat_are_not_kept() -> None:
    cache = RetryCache()
    for rpc in (NO_RPC_IDS, RpcIds(b"short", 1), RpcIds(CLIENT, -1)):
        cache.remember(rpc, DONE)
    assert len(cache) == 0


def test_another_client_s_call_of_the_same_number_is_another_call() -> None:
    cache = RetryCache()
    cache.remember(ids(1), DONE)
    assert cache.find(RpcIds(b"fedcba9876543210", 1)) is None


def test_a_client_s_calls_are_numbered_from_zero() -> None:
    cache = RetryCache()
    cache.remember(ids(0), DONE)
    assert cache.find(ids(0)) is DONE
