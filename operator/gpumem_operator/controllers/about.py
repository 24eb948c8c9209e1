"""Objects as Events name them: what an Event is about."""

from typing import Protocol

from gpumem_operator import names
from gpumem_operator.api.records import PolicyRecord, TenantRecord


class _Pod(Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...


def about(
    kind: str, *, name: str, uid: str, namespace: str = "", api_version: str = "v1"
) -> dict[str, str]:
    """Any object; one without a namespace is in none."""
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, **where, "name": name, "uid": uid}


def about_pod(pod: _Pod) -> dict[str, str]:
    return about("Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)


def about_policy(policy: PolicyRecord) -> dict[str, str]:
    return about(
        names.POLICY_KIND,
        api_version=names.API_VERSION,
        namespace=policy.namespace,
        name=policy.name,
        uid=policy.uid,
    )


def about_tenant(tenant: TenantRecord) -> dict[str, str]:
    return about(names.TENANT_KIND, api_version=names.API_VERSION, name=tenant.name, uid=tenant.uid)
