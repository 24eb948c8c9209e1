"""Fields that this version accepts and does nothing about: whoever sets one is told.

A field leaves this list in the change that makes it work.
"""

from gpumem_operator.api.policy import DefaultPolicySpec, Enforcement


def not_acted_on(spec: DefaultPolicySpec) -> tuple[str, ...]:
    """Paths of such fields that the spec sets to something else than their default."""
    enforcement = Enforcement()
    set_fields = {
        "spec.enforcement.mode": spec.enforcement.mode != enforcement.mode,
        "spec.enforcement.actions": spec.enforcement.actions != enforcement.actions,
    }
    return tuple(path for path, is_set in set_fields.items() if is_set)
