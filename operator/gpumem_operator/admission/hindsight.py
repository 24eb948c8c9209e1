"""What a policy that only observes would have done to a pod."""

from dataclasses import dataclass, replace

from gpumem_operator.admission.decider import Decider
from gpumem_operator.admission.declaration import Declarations
from gpumem_operator.admission.declared import declare_under
from gpumem_operator.admission.planner import make_plan
from gpumem_operator.api.pods import PodFacts
from gpumem_operator.api.values import Values
from gpumem_operator.api.violation import Violation


@dataclass(frozen=True)
class Hindsight:
    """The same pod under the same policy in mode Active."""

    declarations: Declarations
    violations: tuple[Violation, ...]
    """Why it would have been refused; empty where it would have been let in."""


def look_back(facts: PodFacts, decider: Decider, values: Values) -> Hindsight | None:
    """None where the policy acts, or where there is none."""
    if decider.active or decider.spec is None:
        return None
    active = replace(decider, spec=decider.spec.model_copy(update={"mode": "Active"}))
    declarations = declare_under(active, facts, values)
    planned = make_plan(facts, declarations, decider=active, values=values)
    violations = (*declarations.violations, *declarations.out_of_bounds, *planned.violations)
    return Hindsight(declarations, violations)
