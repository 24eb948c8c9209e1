"""What an identity may say: a sidecar of its own pod, the agent of its own node, nothing else."""

from dataclasses import dataclass

from gpumem_operator.intake.identity import Claim, Identity
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Report


@dataclass(frozen=True)
class Accounts:
    """ServiceAccounts of our own, as user names; empty where there is none."""

    agent: str = ""
    """Speaks for the node that its pod is on."""
    reader: str = ""
    """May ask what is known."""


def account(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount; empty for no name."""
    return f"system:serviceaccount:{namespace}:{name}" if name else ""


class NotAllowed(Exception):
    """The identity is known, and may not say this."""


def claimed(claim: Claim, accounts: Accounts) -> Sender:
    """Whom a token would speak for if it were good."""
    if claim.user and claim.user == accounts.agent:
        return Sender("NodeAgent", claim.node)
    return Sender("Sidecar", claim.pod_uid)


def sender_of(identity: Identity, report: Report, accounts: Accounts) -> Sender:
    """Whom the report speaks for. Raises NotAllowed with what does not fit."""
    if not identity.pod_uid:
        raise NotAllowed("the token is bound to no pod")
    if report.sender == "NodeAgent":
        if identity.user != accounts.agent:
            raise NotAllowed(f"{identity.user} is not the agent's account")
        if not identity.node:
            raise NotAllowed("the agent's token names no node")
        return Sender("NodeAgent", identity.node)
    if report.assignments:
        raise NotAllowed("assignments: only an agent knows what kubelet handed out")
    for index, process in enumerate(report.processes):
        if process.pod_uid not in (None, identity.pod_uid):
            raise NotAllowed(f"processes.{index}.podUid is not the pod of the token")
    return Sender("Sidecar", identity.pod_uid)
