"""The configuration of CoreDNS, which answers for the names of Services."""

from __future__ import annotations

from pathlib import Path

from devcluster.node.network import DNS_ADDRESS

CONFIGURATION = Path("/run/Corefile")


def configuration(pki: Path) -> str:
    """Names of the cluster and no others: nothing outside this machine can be reached."""
    return f"""\
.:53 {{
    bind {DNS_ADDRESS}
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {pki / "coredns.kubeconfig"}
    }}
}}
"""
