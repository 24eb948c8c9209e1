"""The two CustomResourceDefinitions, put together from the models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpumem_operator import names
from gpumem_operator.api.model import Model
from gpumem_operator.api.policy import NAME_FITS_LABEL, PolicySpec
from gpumem_operator.api.policy_status import PolicyStatus
from gpumem_operator.api.rules import VALIDATIONS, Rule
from gpumem_operator.api.schema import Schema, structural_schema
from gpumem_operator.api.tenant import TenantSpec, TenantStatus


@dataclass(frozen=True)
class Column:
    """One column of `kubectl get`; a wide one is shown with `-o wide` only."""

    name: str
    path: str
    type: Literal["string", "integer", "date"] = "string"
    description: str = ""
    wide: bool = False

    def as_printer_column(self) -> Schema:
        column: Schema = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            column["description"] = self.description
        return column | ({"priority": 1} if self.wide else {})


@dataclass(frozen=True)
class Kind:
    """One kind: what the API server has to know apart from the fields of its spec and status."""

    name: str
    plural: str
    short: str
    scope: Literal["Namespaced", "Cluster"]
    description: str
    spec: type[Model]
    status: type[Model]
    columns: tuple[Column, ...]
    rules: tuple[Rule, ...] = ()
    """Rules on the whole object, of which CEL sees the name only, besides spec and status."""


def _condition(type_: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].status'


_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")

POLICY: Final = Kind(
    name=names.POLICY_KIND,
    plural=names.POLICY_PLURAL,
    short=names.POLICY_SHORT,
    scope="Namespaced",
    description="Says how much GPU memory the pods of a namespace may hold, and what is done so "
    "that they keep to it.",
    spec=PolicySpec,
    status=PolicyStatus,
    rules=(NAME_FITS_LABEL,),
    columns=(
        Column("Mode", ".spec.mode"),
        Column("Priority", ".spec.priority", "integer"),
        Column("Default", ".spec.limits.default", description="Limit per GPU if none is declared."),
        Column("Max", ".spec.limits.max", description="Largest limit per GPU."),
        Column("Managed", ".status.pods.managed", "integer", "Pods with this policy's plan."),
        Column(
            "Outdated",
            ".status.pods.outdated",
            "integer",
            "Managed pods that were admitted before the policy last changed.",
        ),
        Column(
            "Unmanaged",
            ".status.pods.unmanaged",
            "integer",
            "GPU pods that never went through admission.",
        ),
        Column("Shadowed", _condition("Shadowed"), wide=True),
        Column("Used", ".status.memory.readable.used", description="Measured.", wide=True),
        Column("Ready", _condition("Ready")),
        _AGE,
    ),
)

TENANT: Final = Kind(
    name=names.TENANT_KIND,
    plural=names.TENANT_PLURAL,
    short=names.TENANT_SHORT,
    scope="Cluster",
    description="A set of namespaces that share one quota of GPU memory.",
    spec=TenantSpec,
    status=TenantStatus,
    columns=(
        Column("Limit", ".spec.quota.limit"),
        Column("Charged", ".status.readable.charged", description="Charged to its pods."),
        Column("Queued", ".status.readable.queued", description="Asked for by waiting pods."),
        Column("Used", ".status.readable.used", description="Measured.", wide=True),
        Column("OnExceeded", ".spec.quota.onExceeded"),
        Column("Ready", _condition("Ready")),
        Column("WithinQuota", _condition("WithinQuota")),
        _AGE,
    ),
)

KINDS: Final = (POLICY, TENANT)


def custom_resource_definition(
    kind: Kind, *, annotations: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind, as `kubectl apply` takes it."""
    singular = kind.name.lower()
    metadata: dict[str, Any] = {"name": f"{kind.plural}.{names.GROUP}"}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": names.GROUP,
            "scope": kind.scope,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": singular,
                "shortNames": [kind.short],
                "categories": [names.CATEGORY],
            },
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        column.as_printer_column() for column in kind.columns
                    ],
                    "schema": {"openAPIV3Schema": root_schema(kind)},
                }
            ],
        },
    }


def root_schema(kind: Kind) -> Schema:
    """The schema of a whole object."""
    root: Schema = {
        "description": kind.description,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {
                "description": f"Version of the API: {names.API_VERSION}. Required.",
                "type": "string",
            },
            "kind": {"description": f"The kind: {kind.name}. Required.", "type": "string"},
            "metadata": {"type": "object"},
            "spec": structural_schema(kind.spec),
            "status": structural_schema(kind.status, defaults=False),
        },
    }
    if kind.rules:
        root[VALIDATIONS] = [rule.as_validation() for rule in kind.rules]
    return root
