"""Where the API server is and who we are there: from a kubeconfig, or from the pod we run in.

Only what a ServiceAccount and a test cluster need is supported: tokens, token files and client
certificates. Login by programs (`exec`) or identity providers is refused with a clear error.
"""

import base64
import os
import ssl
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

SERVICE_ACCOUNT_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConnectionConfigError(Exception):
    """The kubeconfig or the ServiceAccount's files can not be used."""


@dataclass(frozen=True)
class Connection:
    """One API server and one identity."""

    server: str
    """Address with scheme, without a slash at its end."""
    ca_pem: str | None = None
    """None: the system's authorities."""
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    """Read again and again, because kubelet replaces the token every hour."""
    client_certificate: bytes | None = field(default=None, repr=False)
    client_key: bytes | None = field(default=None, repr=False)
    verify: bool = True

    def tls_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.ca_pem)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_certificate and self.client_key:
            load_pair(context, self.client_certificate, self.client_key)
        return context

    def bearer(self) -> str | None:
        """The token as it is now."""
        if self.token_file is not None:
            return self.token_file.read_text(encoding="utf-8").strip()
        return self.token


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Put a certificate chain and its key into the context without writing them to a disk.

    Raises ssl.SSLError where they are broken or do not belong together.
    """
    with ExitStack() as files:
        context.load_cert_chain(
            _in_memory(files, certificate), _in_memory(files, key), password=_no_passphrase
        )


def _no_passphrase() -> str:
    """OpenSSL would ask at the terminal, and wait there."""
    raise ValueError("the key is encrypted, and nobody can give its passphrase here")


def _in_memory(files: ExitStack, content: bytes) -> str:
    # OpenSSL takes files only. An anonymous one leaves no key behind, whatever happens.
    descriptor = os.memfd_create("pem")
    files.callback(os.close, descriptor)
    os.write(descriptor, content)
    return f"/proc/self/fd/{descriptor}"


def connection_of(kubeconfig: Path | None) -> Connection:
    """From the file where there is one, else from the pod. Raises ConnectionConfigError."""
    return _of_service_account() if kubeconfig is None else _of_kubeconfig(kubeconfig)


def _of_service_account(folder: Path = SERVICE_ACCOUNT_FOLDER) -> Connection:
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (folder / "token").exists():
        raise ConnectionConfigError(
            "This process runs in no pod with a ServiceAccount (KUBERNETES_SERVICE_HOST or"
            f" {folder / 'token'} is missing): give --kubeconfig FILE"
        )
    shown = f"[{host}]" if ":" in host else host
    return Connection(
        server=f"https://{shown}:{port}",
        ca_pem=(folder / "ca.crt").read_text(encoding="ascii"),
        token_file=folder / "token",
    )


def _of_kubeconfig(path: Path) -> Connection:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        context = _named(config, "context", config["current-context"])
        cluster = _named(config, "cluster", context["cluster"])
        user = _named(config, "user", context["user"])
        server = str(cluster["server"]).rstrip("/")
    except OSError as error:
        raise ConnectionConfigError(f"{path} can not be read: {error.strerror}") from None
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ConnectionConfigError(f"{path} is not a usable kubeconfig: {error!r}") from None
    if "exec" in user or "auth-provider" in user:
        raise ConnectionConfigError(
            f"{path}: its user logs in through a program, which is not supported:"
            " give a kubeconfig with a token or a client certificate"
        )
    ca = _content(path, cluster, "certificate-authority")
    token_file = user.get("tokenFile")
    return Connection(
        server=server,
        ca_pem=ca.decode("ascii") if ca else None,
        token=user.get("token"),
        token_file=path.parent / token_file if token_file else None,
        client_certificate=_content(path, user, "client-certificate"),
        client_key=_content(path, user, "client-key"),
        verify=not cluster.get("insecure-skip-tls-verify", False),
    )


def _named(config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    for entry in config.get(f"{kind}s") or ():
        if entry["name"] == name:
            found: Mapping[str, Any] = entry[kind]
            return found
    raise KeyError(f"{kind} {name}")


def _content(path: Path, entry: Mapping[str, Any], key: str) -> bytes | None:
    data, file = entry.get(f"{key}-data"), entry.get(key)
    if data:
        return base64.b64decode(data)
    return Path(path.parent, file).read_bytes() if file else None
