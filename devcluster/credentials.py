"""Writes all keys, certificates and kubeconfigs of one cluster."""

from __future__ import annotations

from devcluster.components import Layout
from devcluster.kubeconfig import certificate_user, write_kubeconfig
from devcluster.pki import Authority, private_pem, public_pem, signing_key, write_private

SERVING_NAMES = ["localhost", "kubernetes.default.svc", "kubernetes.default"]
SERVING_ADDRESSES = ["127.0.0.1", "10.96.0.1"]
"""Loopback for clients on this host, and the first Service address for those in pods."""


def write_credentials(layout: Layout, *, url: str) -> None:
    pki = layout.pki
    pki.mkdir(mode=0o700)
    authority = Authority()
    authority.pair.write(pki, "ca")
    serving = authority.server("kube-apiserver", dns=SERVING_NAMES, addresses=SERVING_ADDRESSES)
    serving.write(pki, "apiserver")
    key = signing_key()
    write_private(pki / "service-account.key", private_pem(key))
    (pki / "service-account.pub").write_bytes(public_pem(key))
    ca_pem = authority.pair.certificate
    for component in ("kube-controller-manager", "kube-scheduler"):
        user = certificate_user(authority.client(f"system:{component}"))
        write_kubeconfig(layout.kubeconfig_of(component), url=url, ca_pem=ca_pem, user=user)
    admin = authority.client("devcluster-admin", group="system:masters")
    admin.write(pki, "admin")
    write_kubeconfig(layout.kubeconfig, url=url, ca_pem=ca_pem, user=certificate_user(admin))
