"""What a pod declares under whoever decides for it."""

from gpumem_operator.admission.decider import Decider
from gpumem_operator.admission.declaration import Declarations, declare
from gpumem_operator.api.pods import PodFacts
from gpumem_operator.api.values import Values


def declare_under(decider: Decider, facts: PodFacts, values: Values) -> Declarations:
    """The declarations of a pod; a policy that only observes gives no default limit."""
    limits = decider.spec.limits if decider.spec else None
    if limits is not None and not decider.active:
        limits = limits.model_copy(update={"default_bytes": None})
    declarations = declare(
        facts,
        values.memory_resource,
        limits=limits,
        exclusive_resources=frozenset(values.exclusive_resources),
    )
    fills = decider.active and values.scheduling.fill_resource == "Enabled"
    return declarations.as_resources() if fills else declarations
