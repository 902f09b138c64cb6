"""Edits about no path: delegation tokens, cache pools and directives, erasure coding policies."""

from dataclasses import fields, replace
from typing import TypeVar

from namenode_sim.edits import ops
from namenode_sim.edits.values import CacheDirective, CachePool
from namenode_sim.namespace import state
from namenode_sim.namespace.errors import ApplyError

_POOL_DEFAULTS = CachePool(
    name="",
    owner="",
    group="",
    mode=0o755,
    limit=2**63 - 1,
    max_relative_expiry=(2**63 - 1) // 4,
    default_replication=1,
)

Described = TypeVar("Described", CacheDirective, CachePool)

SecretsOp = (
    ops.GetDelegationToken
    | ops.RenewDelegationToken
    | ops.CancelDelegationToken
    | ops.UpdateMasterKey
)
CacheOp = (
    ops.AddCacheDirective
    | ops.RemoveCacheDirective
    | ops.ModifyCacheDirective
    | ops.AddCachePool
    | ops.ModifyCachePool
    | ops.RemoveCachePool
)
EcOp = (
    ops.AddErasureCodingPolicy
    | ops.EnableErasureCodingPolicy
    | ops.DisableErasureCodingPolicy
    | ops.RemoveErasureCodingPolicy
)


def apply_secrets(secrets: state.Secrets, op: SecretsOp) -> None:
    """Apply an edit about delegation tokens or their keys.

    A token whose key is unknown is dropped, as in Hadoop.
    """
    match op:
        case ops.GetDelegationToken(token=token, expiry_time=expiry):
            secrets.token_sequence_number = max(
                secrets.token_sequence_number, token.sequence_number
            )
            if token.master_key_id in secrets.keys:
                secrets.add(token, expiry)
        case ops.RenewDelegationToken(token=token, expiry_time=expiry):
            if token in secrets.tokens:
                secrets.tokens[token] = expiry
        case ops.CancelDelegationToken(token=token):
            secrets.remove(token)
        case ops.UpdateMasterKey(key=key):
            secrets.keys[key.key_id] = key
            secrets.current_key_id = max(secrets.current_key_id, key.key_id)


def apply_cache(cache: state.CacheState, op: CacheOp) -> None:
    cache.changes += 1
    match op:
        case ops.AddCacheDirective(directive=directive):
            _pool(cache, directive.pool or "")
            cache.directives[directive.id] = directive
            cache.next_directive_id = max(cache.next_directive_id, directive.id + 1)
        case ops.ModifyCacheDirective(directive=change):
            cache.directives[change.id] = _merge(_directive(cache, change.id), change)
        case ops.RemoveCacheDirective(directive_id=number):
            _directive(cache, number)
            del cache.directives[number]
        case ops.AddCachePool(pool=pool):
            cache.pools[pool.name] = _merge(_POOL_DEFAULTS, pool)
        case ops.ModifyCachePool(pool=change):
            cache.pools[change.name] = _merge(_pool(cache, change.name), change)
        case ops.RemoveCachePool(name=name):
            _pool(cache, name)
            del cache.pools[name]
            cache.directives = {
                number: directive
                for number, directive in cache.directives.items()
                if directive.pool != name
            }


def _pool(cache: state.CacheState, name: str) -> CachePool:
    try:
        return cache.pools[name]
    except KeyError:
        raise ApplyError(f"no cache pool is named {name!r}") from None


def _directive(cache: state.CacheState, number: int) -> CacheDirective:
    try:
        return cache.directives[number]
    except KeyError:
        raise ApplyError(f"no cache directive has the id {number}") from None


def _merge(old: Described, change: Described) -> Described:
    given = {
        field.name: getattr(change, field.name)
        for field in fields(change)
        if getattr(change, field.name) is not None
    }
    return replace(old, **given)


def apply_erasure_coding(policies: dict[int, state.ErasureCodingPolicy], op: EcOp) -> None:
    """Apply an edit to the erasure coding policies, by id.  A removed one keeps its id."""
    match op:
        case ops.AddErasureCodingPolicy(policy=policy):
            name = state.policy_name(policy)
            if any(known.name == name for known in policies.values()):
                return
            number = max([state.FIRST_USER_EC_ID - 1, *policies]) + 1
            policies[number] = state.ErasureCodingPolicy(number, name, policy)
        case ops.EnableErasureCodingPolicy(name=name):
            _policy(policies, name).state = state.EcState.ENABLED
        case ops.DisableErasureCodingPolicy(name=name):
            found = _policy(policies, name)
            if found.state is state.EcState.ENABLED:  # a removed one stays removed
                found.state = state.EcState.DISABLED
        case ops.RemoveErasureCodingPolicy(name=name):
            found = _policy(policies, name)
            if found.id < state.FIRST_USER_EC_ID:
                raise ApplyError(f"{name} is a system policy and cannot be removed")
            found.state = state.EcState.REMOVED


def _policy(policies: dict[int, state.ErasureCodingPolicy], name: str) -> state.ErasureCodingPolicy:
    for policy in policies.values():
        if policy.name == name:
            return policy
    raise ApplyError(f"no erasure coding policy is named {name!r}")
