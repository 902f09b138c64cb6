"""The three calls about delegation tokens, planned.

See docs/reference/delegation-tokens.md#permissions.
"""

from typing import Final

from ha.security.caller import Method
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import TokenProto
from namenode_sim.client_protocol.tokens import secret_manager as manager
from namenode_sim.client_protocol.words.errors import io_error
from namenode_sim.client_protocol.words.model import EditPlan, Scene, no_edits

_NONE_ISSUED: Final = (
    "this NameNode issues no delegation tokens: that takes hadoop.security.authentication="
    "kerberos, or dfs.namenode.delegation.token.always-use"
)


def get(scene: Scene, request: calls.GetDelegationTokenRequestProto) -> EditPlan:
    """Give a token; none where none are issued, which clients take for "not needed"."""
    if not scene.settings.tokens.issued:
        return no_edits(calls.GetDelegationTokenResponseProto())
    caller, rules = scene.caller, scene.settings.tokens
    _check_proven(scene, "issued")
    renewer = manager.short_name(request.renewer, rules)
    wanted = manager.Wanted(caller.user, renewer, caller.real_user)
    secrets = scene.namespace.secrets
    made, token = manager.issue(secrets, wanted, scene.now_ms, rules, scene.random)
    answer = calls.GetDelegationTokenResponseProto(
        token=TokenProto(
            identifier=token.identifier, password=token.password, kind=manager.KIND, service=""
        )
    )
    return EditPlan(made, lambda: answer)


def renew(scene: Scene, request: calls.RenewDelegationTokenRequestProto) -> EditPlan:
    """Let a token last longer, and return until when."""
    _check_issued(scene)
    _check_proven(scene, "renewed")
    shown = manager.Shown(request.token.identifier, request.token.password)
    secrets, rules = scene.namespace.secrets, scene.settings.tokens
    op = manager.renew(secrets, shown, scene.caller.user, scene.now_ms, rules)
    answer = calls.RenewDelegationTokenResponseProto(newExpiryTime=op.expiry_time)
    return EditPlan((op,), lambda: answer)


def cancel(scene: Scene, request: calls.CancelDelegationTokenRequestProto) -> EditPlan:
    """End a token."""
    _check_issued(scene)
    secrets, rules = scene.namespace.secrets, scene.settings.tokens
    op = manager.cancel(secrets, request.token.identifier, scene.caller.user, rules)
    return EditPlan((op,), calls.CancelDelegationTokenResponseProto)


def _check_issued(scene: Scene) -> None:
    if not scene.settings.tokens.issued:
        raise manager.invalid(_NONE_ISSUED)


def _check_proven(scene: Scene, what: str) -> None:
    """Refuse a caller that a token has proved: a token that is stolen would never end."""
    proof = scene.caller.proof
    unproven = proof is Method.SIMPLE and scene.settings.tokens.proven_only
    if proof is Method.TOKEN or unproven:
        raise io_error(f"Delegation Token can be {what} only with kerberos or web authentication")
