"""The cluster of a kubeconfig, asked as whom kubectl would ask it.

The client library knows nothing of impersonation: whoever checks another one's rights that way
would be shown what they may see themselves.
"""

import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import yaml
from kubernetes.aio import client, config
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from gpumem_operator.kube.api import Api

_HEADER_CHARACTERS: Final = "!#$&'*+^`|"
"""Beside letters, digits and `_.-~`: what a header's name may have. The server decodes the rest."""


class NoCluster(Exception):
    """There is no usable kubeconfig; the text is for whoever called."""


@dataclass(frozen=True)
class Access:
    """How kubectl is told where to ask, and as whom."""

    kubeconfig: Path | None = None
    """None: $KUBECONFIG or ~/.kube/config."""
    context: str | None = None
    user: str | None = None
    """`--as`; None: what the kubeconfig says."""
    groups: tuple[str, ...] = ()
    """`--as-group`; none: what the kubeconfig says."""

    @property
    def where(self) -> str:
        """Paths as kubectl takes them, with colons between."""
        if self.kubeconfig is not None:
            return str(self.kubeconfig)
        return os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")


@asynccontextmanager
async def cluster(access: Access) -> AsyncIterator[Api]:
    """The cluster that `access` means. Raises NoCluster."""
    configuration = client.Configuration()
    try:
        loader = _loader(access)
        user = _user(loader)
        headers = tuple(impersonation(user, access))
        await loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
    except (config.ConfigException, OSError, yaml.YAMLError) as error:
        raise NoCluster(f"no cluster can be asked: {error}") from None
    if "exec" in user and not _identified(configuration):
        program = (user["exec"] or {}).get("command")
        raise NoCluster(
            f"no cluster can be asked: {program}, by which the kubeconfig logs in, gave neither a"
            " token nor a certificate: run it, and see what it says"
        )
    async with client.ApiClient(configuration) as connection:
        yield Api(connection, headers=headers)


def current_namespace(access: Access) -> str:
    """The namespace that kubectl would use; `default` where none is set."""
    try:
        loader = _loader(access)
    except (NoCluster, config.ConfigException, OSError, yaml.YAMLError):
        return "default"
    namespace: str = loader.current_context["context"].get("namespace") or "default"
    return namespace


def impersonation(user: Mapping[str, Any], access: Access) -> Iterator[tuple[str, str]]:
    """Headers that say as whom the API server shall answer; `user` is the kubeconfig's entry.

    An option stands before the kubeconfig's field, each by itself, as with kubectl. Raises
    NoCluster for groups, a uid or extras of nobody.
    """
    name = access.user or user.get("as")
    groups = access.groups or tuple(user.get("as-groups") or ())
    uid, extra = user.get("as-uid"), user.get("as-user-extra") or {}
    if not name:
        if groups or uid or extra:
            raise NoCluster(
                "no cluster can be asked: groups, a uid or extras to ask as, and no user: give"
                " --as USER, or set `as` beside them in the kubeconfig"
            )
        return
    yield "Impersonate-User", str(name)
    yield from (("Impersonate-Group", str(group)) for group in groups)
    if uid:
        yield "Impersonate-Uid", str(uid)
    for key, values in extra.items():
        header = f"Impersonate-Extra-{quote(str(key), safe=_HEADER_CHARACTERS)}"
        yield from ((header, str(value)) for value in values)


def _loader(access: Access) -> KubeConfigLoader:
    where = access.where
    if not any(_files(where)):
        raise NoCluster(f"no cluster can be asked: there is no kubeconfig at {where}")
    merged = KubeConfigMerger(where)  # type: ignore[no-untyped-call]
    return KubeConfigLoader(  # type: ignore[no-untyped-call]
        config_dict=merged.config, config_base_path=None, active_context=access.context
    )


def _user(loader: KubeConfigLoader) -> Mapping[str, Any]:
    found = loader._user
    return found.value if found is not None else {}


def _identified(configuration: client.Configuration) -> bool:
    return bool(configuration.api_key or configuration.cert_file)


def _files(where: str) -> Iterable[Path]:
    return (path for one in where.split(os.pathsep) if one and (path := Path(one)).is_file())
