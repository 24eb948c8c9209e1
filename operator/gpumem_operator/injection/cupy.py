"""CuPy: its pool takes whole bytes or a percentage; 0 and nothing at all mean unlimited."""

from gpumem_operator import names
from gpumem_operator.api.quantity import whole_number
from gpumem_operator.injection.environment import Cap, Environment, Variables
from gpumem_operator.injection.target import Target


def variables(target: Target, _environment: Environment) -> Variables:
    """CUPY_GPU_MEMORY_LIMIT: the limit less the context reserve."""
    cap = target.cap_bytes
    if cap is None:
        return Variables()

    def lower(theirs: str) -> str:
        # A percentage is one of an unknown card: it counts as above.
        amount = whole_number(theirs)
        return theirs if amount and amount < cap else str(cap)

    return Variables((Cap(names.CUPY_LIMIT_ENV, str(cap), lower),))
