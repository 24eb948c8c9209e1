"""In Managed mode certificates belong to the controller, also where helm made the objects."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from devcluster.installation import Installation

pytestmark = pytest.mark.cluster

BUNDLE = base64.b64encode(
    b"-----BEGIN CERTIFICATE-----\nMIIBVTCB/KADAgECAhQ=\n-----END CERTIFICATE-----\n"
).decode()
CONFIGURATION = ["mutatingwebhookconfiguration", "gpu-memory-operator"]


def test_the_ca_and_the_keys_stay_while_the_rest_is_upgraded(bare: Installation) -> None:
    kubectl = bare.cluster.kubectl

    def read(*what: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(kubectl("get", *what, "-o", "json").stdout)
        return found

    secret = ["secret", "gpu-memory-operator-webhook-cert", "-n", bare.namespace]
    hooks = read(*CONFIGURATION)["webhooks"]
    bundle = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": _real_ca(bare)}
        for index in range(len(hooks))
    ]
    kubectl("patch", *CONFIGURATION, "--type=json", "-p", json.dumps(bundle))
    kubectl("patch", *secret, "-p", json.dumps({"data": {"tls.key": BUNDLE}}))
    seal = ["secret", "gpu-memory-operator-seal", "-n", bare.namespace]
    key = read(*seal)["data"]

    bare.upgrade({"ignoredNamespaces": ["other"]})

    after = read(*CONFIGURATION)["webhooks"]
    assert [hook["clientConfig"]["caBundle"] for hook in after] == [_real_ca(bare)] * len(hooks)
    assert after[0]["namespaceSelector"]["matchExpressions"][0]["values"][0] == "other"
    assert read(*secret)["data"] == {"tls.key": BUNDLE}
    assert read(*seal)["data"] == key
    bare.upgrade({"ignoredNamespaces": ["kube-system"]})


def _real_ca(installation: Installation) -> str:
    """The API server takes only what it can read as certificates."""
    return base64.b64encode(installation.cluster.ca_pem).decode()


@pytest.mark.parametrize(
    ("role", "verb", "what", "may"),
    [
        ("webhook", "watch", ["secrets/gpu-memory-operator-webhook-cert"], "yes"),
        ("webhook", "watch", ["secrets/gpu-memory-operator-seal"], "yes"),
        ("webhook", "update", ["secrets/gpu-memory-operator-seal"], "no"),
        ("webhook", "get", ["secrets/gpu-memory-operator-ca"], "no"),
        ("webhook", "list", ["secrets"], "no"),
        ("webhook", "list", ["pods", "-A"], "no"),
        ("webhook", "patch", ["gpumemorypolicies", "-A"], "no"),
        ("controller", "update", ["secrets/gpu-memory-operator-ca"], "yes"),
        ("controller", "update", ["secrets/gpu-memory-operator-seal"], "yes"),
        ("controller", "get", ["secrets/other"], "no"),
        ("controller", "list", ["secrets"], "no"),
        ("controller", "create", ["secrets"], "no"),
        ("controller", "patch", ["pods", "-A"], "yes"),
        ("controller", "create", ["pods", "-A", "--subresource=eviction"], "yes"),
        ("controller", "patch", ["pods", "-A", "--subresource=status"], "yes"),
        ("controller", "delete", ["pods", "-A"], "no"),
        ("controller", "create", ["pods", "-A"], "no"),
        ("controller", "patch", ["gpumemorypolicies", "-A"], "no"),
        ("controller", "patch", ["gpumemorypolicies", "-A", "--subresource=status"], "yes"),
        ("controller", "patch", ["nodes"], "yes"),
        ("controller", "update", ["nodes"], "no"),
        ("controller", "patch", ["nodes", "--subresource=status"], "yes"),
        ("controller", "manage", ["gpumemorypolicies.gpumemory.dev", "-A"], "no"),
        (
            "controller",
            "patch",
            ["mutatingwebhookconfigurations/gpu-memory-operator"],
            "yes",
        ),
        ("controller", "patch", ["mutatingwebhookconfigurations/other"], "no"),
    ],
)
def test_the_accounts_may_do_what_they_need_and_no_more(
    bare: Installation, role: str, verb: str, what: list[str], may: str
) -> None:
    account = f"system:serviceaccount:{bare.namespace}:gpu-memory-operator-{role}"
    where = [] if "-A" in what else ["-n", bare.namespace]

    answer = bare.cluster.kubectl(
        "auth", "can-i", verb, *what, *where, f"--as={account}", check=False
    )

    assert answer.stdout.strip() == may, answer.stderr
