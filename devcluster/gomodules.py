"""Which Go programs a cluster needs, and the module files that pin each of them.

Every folder under `modules/` holds a go.mod with `tool` directives and no code: its go.sum checks
what is downloaded, so no prebuilt binary has to be trusted. Each family has a go.mod of its own
because their dependencies do not agree with each other.

To move to another version, run `go get -tool PACKAGE@VERSION` in the folder for each of its
tools. For Kubernetes, first set the version of every `replace` to its staging modules: 1.36.3 of
Kubernetes goes with 0.36.3 of those. Always give the version, or go takes the newest and mixes.

Kubernetes is there in each minor version that the product is for. GPUMEM_KUBERNETES says which one
a cluster is to have, for example 1.34; without it the newest.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from devcluster.failure import ClusterError

MODULES = Path(__file__).parent / "modules"
KUBERNETES_VARIABLE = "GPUMEM_KUBERNETES"
KUBERNETES_MINORS = (34, 35, 36)
_PINNED = {f"1.{minor}": minor for minor in KUBERNETES_MINORS}
"""Each of them as it is asked for. The modules also say which patch version that is."""


def cache_folder() -> Path:
    """Where binaries and the list of running clusters live; honours XDG_CACHE_HOME."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gpu-memory-operator"


@dataclass(frozen=True)
class GoModule:
    """One folder under `modules/`."""

    name: str
    main_module: str
    """The module whose version counts as the version of the programs."""
    link_variables: tuple[str, ...] = ()
    """Assignments for the linker's -X; may use {version}, {major} and {minor}.

    Without them a program built from a module reports a placeholder version."""
    tags: tuple[str, ...] = ()
    """Build tags."""

    @property
    def folder(self) -> Path:
        return MODULES / self.name

    @property
    def title(self) -> str:
        """What people call it."""
        return "Kubernetes" if self.name.startswith("kubernetes") else self.name

    @cached_property
    def version(self) -> tuple[int, int, int]:
        """The version of `main_module` that go.mod pins."""
        found = re.search(
            rf"^\s*(?:require )?{re.escape(self.main_module)} v(\d+)\.(\d+)\.(\d+)",
            (self.folder / "go.mod").read_text(),
            re.MULTILINE,
        )
        if found is None:
            raise ValueError(f"{self.folder / 'go.mod'} does not require {self.main_module}")
        return int(found[1]), int(found[2]), int(found[3])

    @property
    def build_flags(self) -> tuple[str, ...]:
        major, minor, patch = self.version
        variables = (
            variable.format(version=f"v{major}.{minor}.{patch}", major=major, minor=minor)
            for variable in self.link_variables
        )
        flags = ("-trimpath", "-ldflags", " ".join(["-s -w", *(f"-X {v}" for v in variables)]))
        return (*flags, "-tags", ",".join(self.tags)) if self.tags else flags

    @property
    def binary_folder(self) -> Path:
        """Where the built programs are kept: one folder for each state of the pins and flags."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((self.folder / name).read_bytes())
        digest.update(repr(self.build_flags).encode())
        return cache_folder() / "bin" / digest.hexdigest()[:12]


@dataclass(frozen=True)
class Program:
    """One program of a cluster: where its source is and which other builds of it will do."""

    name: str
    module: GoModule
    package: str
    version_arguments: tuple[str, ...]
    """Arguments that make the program print its version and exit."""
    accepted: tuple[tuple[int, int | None], ...]
    """(major, minor) versions that are taken from elsewhere; a minor of None means any."""
    typical_seconds: int
    """How long a build takes on 2 cores, after those that come earlier in PROGRAMS."""


def kubernetes_minors() -> tuple[int, ...]:
    """The minor versions of Kubernetes 1 that will do; the last is built where there is none.

    Where GPUMEM_KUBERNETES asks for one that no module here pins, that is said by `check_wanted`,
    and not here, where modules are imported."""
    wanted = os.environ.get(KUBERNETES_VARIABLE, "")
    minor = _PINNED.get(wanted)
    return KUBERNETES_MINORS if minor is None else (minor,)


def check_wanted() -> None:
    """Raises ClusterError where GPUMEM_KUBERNETES asks for a version that no module here pins."""
    wanted = os.environ.get(KUBERNETES_VARIABLE)
    if wanted and wanted not in _PINNED:
        raise ClusterError(
            f"{KUBERNETES_VARIABLE} is {wanted}, and there are {', '.join(_PINNED)}. Take one of"
            " these, or unset it for the newest."
        )


KUBERNETES = GoModule(
    f"kubernetes-1.{kubernetes_minors()[-1]}",
    "k8s.io/kubernetes",
    tuple(
        f"{package}.{variable}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for variable in ("gitVersion={version}", "gitMajor={major}", "gitMinor={minor}")
    ),
)
ETCD = GoModule("etcd", "go.etcd.io/etcd/server/v3")
HELM = GoModule("helm", "helm.sh/helm/v4", ("helm.sh/helm/v4/internal/version.version={version}",))
CONTAINERD = GoModule(
    "containerd",
    "github.com/containerd/containerd/v2",
    ("github.com/containerd/containerd/v2/version.Version={version}",),
    # These need C libraries, or file systems that few machines have.
    tags=("no_btrfs", "no_devmapper", "no_zfs"),
)
COREDNS = GoModule("coredns", "github.com/coredns/coredns")


def _kubernetes_program(
    name: str, typical_seconds: int, version_arguments: tuple[str, ...] = ("--version",)
) -> Program:
    return Program(
        name,
        KUBERNETES,
        f"k8s.io/kubernetes/cmd/{name}",
        version_arguments,
        accepted=tuple((1, minor) for minor in kubernetes_minors()),
        typical_seconds=typical_seconds,
    )


PROGRAMS = (
    Program(
        "etcd",
        ETCD,
        "go.etcd.io/etcd/server/v3",
        ("--version",),
        accepted=((3, 5), (3, 6)),
        typical_seconds=45,
    ),
    _kubernetes_program("kube-apiserver", 180),
    _kubernetes_program("kube-controller-manager", 50),
    _kubernetes_program("kube-scheduler", 20),
    _kubernetes_program("kubectl", 20, ("version", "--client")),
    Program(
        "helm",
        HELM,
        "helm.sh/helm/v4/cmd/helm",
        ("version", "--short"),
        accepted=((4, None),),
        typical_seconds=85,
    ),
)
NODE_PROGRAMS = (
    _kubernetes_program("kubelet", 35),
    _kubernetes_program("kube-proxy", 10),
    *(
        Program(
            name,
            CONTAINERD,
            f"github.com/containerd/containerd/v2/cmd/{name}",
            ("--version",),
            accepted=((2, None),),
            typical_seconds=seconds,
        )
        for name, seconds in (("containerd", 45), ("containerd-shim-runc-v2", 5), ("ctr", 5))
    ),
    Program(
        "coredns",
        COREDNS,
        "github.com/coredns/coredns",
        ("-version",),
        accepted=((1, None),),
        typical_seconds=80,
    ),
)
"""What a node needs besides; built only when one is asked for."""
SERVERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
