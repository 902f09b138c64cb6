"""What edits about tokens, caches and erasure coding policies do to what is there before."""

import pytest

from namenode_sim.edits import ops, values
from namenode_sim.namespace import admin
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.state import CacheState, EcState, Secrets, system_ec_policies


def token(sequence_number: int, key_id: int = 30) -> values.DelegationTokenIdentifier:
    return values.DelegationTokenIdentifier("o", "r", "", 1, 2, sequence_number, key_id)


def test_the_highest_numbers_of_tokens_and_keys_stay() -> None:
    secrets = Secrets()
    for key_id in (30, 20):
        admin.apply_secrets(secrets, ops.UpdateMasterKey(values.DelegationKey(key_id, 99, b"k")))
    for number in (8, 7):
        admin.apply_secrets(secrets, ops.GetDelegationToken(token(number), 50))
    admin.apply_secrets(secrets, ops.UpdateMasterKey(values.DelegationKey(9, 99, b"k")))
    assert (secrets.token_sequence_number, secrets.current_key_id) == (8, 30)
    assert secrets.tokens == {token(8): 50, token(7): 50}


def test_the_tokens_of_each_owner_are_counted_once() -> None:
    secrets = Secrets()
    admin.apply_secrets(secrets, ops.UpdateMasterKey(values.DelegationKey(30, 99, b"k")))
    for given in (token(1), token(2), token(1), token(3, key_id=31)):
        admin.apply_secrets(secrets, ops.GetDelegationToken(given, 50))
    assert secrets.tokens_of == {"o": 2}
    for ended in (token(1), token(1), token(9)):
        admin.apply_secrets(secrets, ops.CancelDelegationToken(ended))
    assert secrets.tokens_of == {"o": 1}
    admin.apply_secrets(secrets, ops.CancelDelegationToken(token(2)))
    assert dict(secrets.tokens_of) == {}


def test_the_highest_key_is_not_the_highest_token() -> None:
    secrets = Secrets()
    admin.apply_secrets(secrets, ops.GetDelegationToken(token(8), 50))
    admin.apply_secrets(secrets, ops.UpdateMasterKey(values.DelegationKey(3, 99, b"k")))
    assert secrets.current_key_id == 3


def test_a_token_that_is_not_there_is_not_renewed() -> None:
    secrets = Secrets()
    admin.apply_secrets(secrets, ops.UpdateMasterKey(values.DelegationKey(30, 99, b"k")))
    admin.apply_secrets(secrets, ops.RenewDelegationToken(token(1), 60))
    assert secrets.tokens == {}


def cached() -> CacheState:
    """Pools p and q; directive 4 is in p, 2 in q."""
    cache = CacheState()
    for name in ("p", "q"):
        admin.apply_cache(cache, ops.AddCachePool(values.CachePool(name)))
    for number, pool in ((4, "p"), (2, "q")):
        directive = values.CacheDirective(number, "/d", 1, pool, 9)
        admin.apply_cache(cache, ops.AddCacheDirective(directive))
    return cache


def test_a_directive_goes_alone() -> None:
    cache = cached()
    admin.apply_cache(cache, ops.RemoveCacheDirective(4))
    assert (set(cache.directives), set(cache.pools)) == ({2}, {"p", "q"})
    assert cache.next_directive_id == 5


def test_a_pool_goes_with_its_own_directives() -> None:
    cache = cached()
    admin.apply_cache(cache, ops.RemoveCachePool("q"))
    assert (set(cache.directives), set(cache.pools)) == ({4}, {"p"})


UNKNOWN: dict[str, tuple[admin.CacheOp, str]] = {
    "a directive in a pool that is not there": (
        ops.AddCacheDirective(values.CacheDirective(9, "/d", 1, "x", 9)),
        "no cache pool is named 'x'",
    ),
    "a directive in no pool": (
        ops.AddCacheDirective(values.CacheDirective(9, "/d", 1, None, 9)),
        "no cache pool is named ''",
    ),
    "a directive that is not there goes": (ops.RemoveCacheDirective(9), "has the id 9"),
    "a directive that is not there changes": (
        ops.ModifyCacheDirective(values.CacheDirective(9, replication=3)),
        "has the id 9",
    ),
    "a pool that is not there goes": (ops.RemoveCachePool("x"), "is named 'x'"),
}


@pytest.mark.parametrize(("op", "message"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_is_not_there_is_refused(op: admin.CacheOp, message: str) -> None:
    cache = cached()
    with pytest.raises(ApplyError, match=message):
        admin.apply_cache(cache, op)
    assert cache == cached()


def test_a_policy_is_added_once_and_can_be_enabled() -> None:
    policies = system_ec_policies()
    for _ in range(2):
        admin.apply_erasure_coding(
            policies, ops.AddErasureCodingPolicy(values.EcPolicy("rs", 3, 2, 8192))
        )
    assert sorted(policies) == [1, 2, 3, 4, 5, 64]
    admin.apply_erasure_coding(policies, ops.EnableErasureCodingPolicy("RS-3-2-8k"))
    states = {number: policy.state for number, policy in policies.items()}
    assert states.pop(64) is EcState.ENABLED
    assert set(states.values()) == {EcState.DISABLED}
