"""JAX: whether it takes its share at the first operation.

The share itself (XLA_PYTHON_CLIENT_MEM_FRACTION) is a fraction of a card that is not known at
admission, so no variable of ours bounds it. Source: jaxlib 0.4.31 to 0.12; preallocation is
disabled by false, False and 0 only.
"""

from gpumem_operator import names
from gpumem_operator.injection.environment import Environment, Setting, Variables
from gpumem_operator.injection.target import Target

_VALUES = {"Disabled": "false", "Enabled": "true"}


def variables(target: Target, _environment: Environment) -> Variables:
    """XLA_PYTHON_CLIENT_PREALLOCATE."""
    value = _VALUES.get(target.spec.frameworks.jax.preallocation)
    return Variables((Setting(names.JAX_PREALLOCATE_ENV, value),)) if value else Variables()
