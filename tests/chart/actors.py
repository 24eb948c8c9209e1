"""A tenant, the platform and the operator, as the API server sees them."""

from __future__ import annotations

import json

from devcluster.installation import Installation
from gpumem_operator import names

TENANT = "tenant@example.com"
PLATFORM = "platform@example.com"
CONTROLLER = "system:serviceaccount:gpumem-system:gpu-memory-operator-controller"
WEBHOOK = "system:serviceaccount:gpumem-system:gpu-memory-operator-webhook"

POLICY = {
    "apiVersion": names.API_VERSION,
    "kind": names.POLICY_KIND,
    "metadata": {"name": "mine"},
    "spec": {"limits": {"default": "8Gi"}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "trained",
        "labels": {names.MANAGED_LABEL: "true", names.POLICY_LABEL: "p", "app": "a"},
        "annotations": {names.POLICY_HASH_ANNOTATION: "1"},
    },
    "spec": {"containers": [{"name": "main", "image": "none"}]},
}
BARE_POD = {**POD, "metadata": {"name": "plain"}}
RIGHTS = [
    # A tenant has everything in its namespace, and the platform's own role there as well.
    ["rolebinding", "edit", "--clusterrole=edit", f"--user={TENANT}", "-n", "tenant"],
    [
        *("rolebinding", "policies", "--clusterrole=gpu-memory-operator-platform"),
        *(f"--user={TENANT}", "-n", "tenant"),
    ],
    [
        "clusterrole",
        "namespaces",
        "--verb=*",
        "--resource=namespaces,namespaces/status,namespaces/finalize",
    ],
    ["clusterrole", "pod-status", "--verb=*", "--resource=pods/status,pods/binding,bindings"],
    ["clusterrolebinding", "namespaces", "--clusterrole=namespaces", f"--user={TENANT}"],
    ["clusterrolebinding", "pod-status", "--clusterrole=pod-status", f"--user={TENANT}"],
    ["clusterrolebinding", "webhook-pods", "--clusterrole=edit", f"--user={WEBHOOK}"],
    [
        *("clusterrolebinding", "platform", "--clusterrole=gpu-memory-operator-platform"),
        f"--user={PLATFORM}",
    ],
    # kubectl reads a node before it patches it; the controller itself does not.
    ["clusterrole", "see-nodes", "--verb=get", "--resource=nodes,nodes/status"],
    ["clusterrolebinding", "see-nodes", "--clusterrole=see-nodes", f"--user={CONTROLLER}"],
    ["clusterrolebinding", "platform-ns", "--clusterrole=namespaces", f"--user={PLATFORM}"],
]


class Actor:
    """Somebody who acts on the cluster, with rights of their own."""

    def __init__(self, installation: Installation, user: str) -> None:
        self._kubectl = installation.cluster.kubectl
        self._user = user

    def does(self, *arguments: str, input: object = None) -> str:
        """The complaint of the API server; empty where it did as it was told."""
        text = None if input is None else json.dumps(input)
        result = self._kubectl(*arguments, f"--as={self._user}", input=text, check=False)
        return "" if result.returncode == 0 else result.stderr
