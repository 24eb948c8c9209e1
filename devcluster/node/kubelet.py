"""The kubelet and kube-proxy of one node: configuration, command lines and credentials."""

from __future__ import annotations

import json
from pathlib import Path

from devcluster.kubeconfig import certificate_user, write_kubeconfig
from devcluster.node.containerd import SOCKET
from devcluster.node.network import DNS_ADDRESS, Block
from devcluster.pki import Authority

SERVING_NAME = "kubernetes.default"
"""The apiserver's certificate has this name, and not the address that a node calls it at."""
TUNABLES = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}
"""Settings of the whole machine that a kubelet sets at its start (`setupKernelTunables` in
pkg/kubelet/cm). A node of ours shows it files with these contents instead."""


def write_credentials(pki: Path, *, block: Block, name: str, port: int) -> None:
    """Write the certificates and kubeconfigs of a node's components into `pki`."""
    authority = Authority.read(pki, "ca")
    url = f"https://{block.machine_address}:{port}"
    ca_pem = authority.pair.certificate
    serving = authority.server(f"system:node:{name}", dns=[name], addresses=[block.node_address])
    serving.write(pki, "kubelet")
    identities = {
        "kubelet": authority.client(f"system:node:{name}", group="system:nodes"),
        "kube-proxy": authority.client("system:kube-proxy"),
        # No role for it comes with an API server.
        "coredns": authority.client("system:coredns", group="system:masters"),
    }
    for component, pair in identities.items():
        write_kubeconfig(
            pki / f"{component}.kubeconfig",
            url=url,
            ca_pem=ca_pem,
            user=certificate_user(pair),
            server_name=SERVING_NAME,
        )


def configuration(pki: Path, *, cgroup: str, block: Block) -> str:
    """KubeletConfiguration, as JSON."""
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": block.node_address,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(pki / "ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(pki / "kubelet.crt"),
            "tlsPrivateKeyFile": str(pki / "kubelet.key"),
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupRoot": f"/{cgroup}",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "clusterDNS": [DNS_ADDRESS],
            "clusterDomain": "cluster.local",
            # Nothing of this machine's names and search domains gets into pods.
            "resolvConf": "",
            "makeIPTablesUtilChains": False,
            # Its default is below /usr, where this machine would keep what a test left.
            "volumePluginDir": "/var/lib/kubelet/plugins",
            # A full disk of the developer's is no reason to evict, or to forget imported images.
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "healthzPort": 0,
        },
        indent=2,
    )


def kubelet_arguments(pki: Path, *, configuration: Path, name: str, block: Block) -> list[str]:
    return [
        f"--config={configuration}",
        f"--kubeconfig={pki / 'kubelet.kubeconfig'}",
        f"--hostname-override={name}",
        f"--node-ip={block.node_address}",
    ]


def proxy_arguments(pki: Path, *, name: str, block: Block) -> list[str]:
    return [
        f"--kubeconfig={pki / 'kube-proxy.kubeconfig'}",
        f"--hostname-override={name}",
        f"--cluster-cidr={block.pods}",
        "--proxy-mode=nftables",
        # That limit is the whole machine's.
        "--conntrack-max-per-core=0",
    ]
