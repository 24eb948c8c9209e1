"""What a controller process is told."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from gpumem_operator.api.values import Values
from gpumem_operator.certs.pair import LEAF_LIFETIME
from gpumem_operator.kube.election import DEFAULT_TIMINGS, Timings


@dataclass(frozen=True)
class CertificateOptions:
    """Which certificates to keep, and where their CA is written."""

    ca_secret: str
    cert_secret: str
    webhook_configurations: tuple[str, ...]
    """Names; each is looked for among mutating and validating configurations."""
    hosts: tuple[str, ...]
    """DNS names and addresses of the webhook; localhost and 127.0.0.1 are added."""
    leaf_lifetime: timedelta = LEAF_LIFETIME


@dataclass(frozen=True)
class ReportOptions:
    """How reports about GPU memory are taken in."""

    port: int
    """Of the HTTPS endpoint; 0 lets the system choose."""
    cert_secret: str
    """Secret with tls.crt and tls.key for it."""
    agent_account: str = ""
    """ServiceAccount of node agents, in the release's namespace; empty: there is none."""
    reader_account: str = ""
    """ServiceAccount whose tokens may ask what is known; empty: nobody may."""
    pod: str = ""
    """Name of this process's pod, which the Service for reports finds by a label; empty where it
    runs in none."""


@dataclass(frozen=True)
class Periods:
    """How often things are looked at again, in seconds. Each look also repairs what was missed."""

    lists: float = 300.0
    """Whole lists of everything: found slipped pods, forgotten objects."""
    certificates: float = 10.0
    """Secrets and webhook configurations: four small requests."""
    settle: float = 0.5
    """How long changes are gathered before statuses are computed."""
    sweep_settle: float = 5.0
    """How long changes of policies, tenants and namespaces are gathered before pods are listed."""
    usage: float = 10.0
    """Measured numbers: a status is written at most once in so long for their sake."""
    scaling: float = 10.0
    """Replicas of scaling targets: one small request for each target."""
    retry: float = 5.0
    """After something failed."""


@dataclass(frozen=True)
class ControllerOptions:
    """One controller process."""

    values: Values
    namespace: str
    """The release's own: its Lease and Secrets are there, and its pods are never handled."""
    lease: str
    seal_secret: str
    """Secret with the key that admission seals declarations with; filled where it is empty."""
    nodes_config_map: str = ""
    """ConfigMap in which admission reads what nodes can hold limits with; empty: there is none."""
    kubeconfig: Path | None = None
    """None: the ServiceAccount of the pod."""
    bind: str = "0.0.0.0"
    health_port: int = 8081
    certificates: CertificateOptions | None = None
    """None: certificates are provided by somebody else."""
    reports: ReportOptions | None = None
    """None: nobody takes reports in, and nothing is measured."""
    timings: Timings = DEFAULT_TIMINGS
    periods: Periods = field(default_factory=Periods)
