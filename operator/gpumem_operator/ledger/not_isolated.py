"""NamespacesNotIsolated: where a container that asks for no GPU may see every GPU of its node.

It then uses memory that nobody is charged for. Admission can refuse a variable of the author; what
an image or an `envFrom` sets it can not read, and a pod without a GPU is none of its business.
"""

from typing import Final

from gpumem_operator import names
from gpumem_operator.api import conditions
from gpumem_operator.api.count import named
from gpumem_operator.api.transitions import Finding

MOST_NAMED: Final = 5


def namespaces_not_isolated(namespaces: tuple[str, ...]) -> Finding:
    """The condition of a tenant; `namespaces` are its own without the label, in name order."""
    kind = conditions.NAMESPACES_NOT_ISOLATED
    if not namespaces:
        return Finding(
            kind,
            "False",
            conditions.ISOLATED,
            "In each of its namespaces containers that ask for no GPU get none.",
        )
    return Finding(
        kind,
        "True",
        conditions.LABEL_MISSING,
        f"{named(namespaces, most=MOST_NAMED)}: containers that ask for no GPU may see those"
        f" of its node, by its image or by envFrom, and nobody is charged. Next step: kubectl label"
        f" namespace {' '.join(namespaces[:MOST_NAMED])} {names.ISOLATE_LABEL}=true",
    )
