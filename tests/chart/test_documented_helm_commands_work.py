"""`helm install`, `upgrade`, `rollback` and `uninstall` as the documents show them, to the letter.

`helm rollback` takes the values of the release before back with it.
"""

from __future__ import annotations

import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devcluster import Cluster
from patience import WAIT

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]


def shown_in(document: str, program: str = "helm") -> list[list[str]]:
    text = (ROOT / document).read_text()
    lines = re.findall(rf"^\$ ({program} .+)$", text, re.MULTILINE)
    return [shlex.split(line)[1:] for line in lines]


def refuses_claims(cluster: Cluster) -> bool:
    name = ["get", "configmap", "gpu-memory-operator-settings", "-n", "gpumem-system"]
    return "resourceClaims: Refuse" in cluster.kubectl(*name, "-o", "yaml").stdout


def end_the_job(cluster: Cluster) -> None:
    """Say that the pod which opens gates has succeeded, as the kubelet of a node would."""
    mine = ["pods", "-l", "app.kubernetes.io/component=uninstall", "-n", "gpumem-system"]
    cluster.kubectl("wait", "--for=create", *mine, WAIT)
    name = cluster.kubectl("get", *mine, "-o", "name").stdout.strip()
    body = '{"status": {"phase": "Succeeded"}}'
    cluster.kubectl("patch", name, "-n", "gpumem-system", "--subresource=status", "-p", body)


def test_from_the_installation_to_what_an_uninstall_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    install, upgrade, newer, back, with_agent, uninstall = shown_in("docs/install.md")
    assert shown_in("README.md") == [install]

    with Cluster.start() as cluster:

        def names(*kinds: str) -> set[str]:
            where = ["get", ",".join(kinds), "-n", "gpumem-system", "-o", "name"]
            found = cluster.kubectl(*where).stdout.split()
            return {name for name in found if "gpu" in name}

        assert "Next step" in cluster.helm(*install).stdout
        # The pods go nowhere without a node, but the API server took every manifest.
        assert len(names("deployments")) == 2
        assert "REVISION: 2" in cluster.helm(*upgrade).stdout
        assert "REVISION: 3" in cluster.helm(*newer).stdout
        assert refuses_claims(cluster), "the values of the release before are kept"
        cluster.helm("upgrade", *newer[1:], "--set=resourceClaims=Warn")
        assert not refuses_claims(cluster)
        assert "Rollback was a success" in cluster.helm(*back).stdout
        assert refuses_claims(cluster)
        assert "REVISION: 6" in cluster.helm(*with_agent).stdout
        assert names("daemonsets") == {"daemonset.apps/gpu-memory-operator-agent"}
        for look in shown_in("docs/install.md", "kubectl"):
            assert "gpu-memory-operator-agent" in cluster.kubectl(*look).stdout
        definitions = names("customresourcedefinitions")
        assert len(definitions) == 2

        with ThreadPoolExecutor(1) as other:
            going = other.submit(cluster.helm, *uninstall)
            end_the_job(cluster)
            going.result()

        assert names("customresourcedefinitions") == definitions
        assert names("deployments", "clusterroles", "validatingadmissionpolicies") == set()
        assert names("secrets") == {"secret/gpu-memory-operator-seal"}
        assert "Next step" in cluster.helm(*install).stdout, "what is left is in the way"


def test_pods_of_the_release_would_be_let_in_by_the_restricted_standard() -> None:
    manifests = "deployments", "-n", "gpumem-system"
    [install, *_] = shown_in("docs/install.md")
    with Cluster.start() as cluster:
        cluster.kubectl("create", "namespace", "gpumem-system")
        enforce = "pod-security.kubernetes.io/enforce=restricted"
        cluster.kubectl("label", "namespace", "gpumem-system", enforce)
        release, _, *flags = install[1:]
        cluster.helm("install", release, ROOT / "charts" / "gpu-memory-operator", *flags)

        for deployment in cluster.kubectl("get", *manifests, "-o", "name").stdout.split():
            what = "jsonpath={.status.conditions[?(@.type=='ReplicaFailure')].message}"
            cluster.kubectl(
                *("wait", deployment, "-n", "gpumem-system", WAIT),
                "--for=jsonpath={.status.unavailableReplicas}",
            )
            failed = cluster.kubectl("get", deployment, "-n", "gpumem-system", "-o", what)
            assert failed.stdout == ""
        pods = cluster.kubectl("get", "pods", "-n", "gpumem-system", "-o", "name").stdout.split()
        assert len(pods) == 4
