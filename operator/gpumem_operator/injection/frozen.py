"""The declaration, frozen into the container: from creation on only this and resources count."""

from gpumem_operator import names
from gpumem_operator.api.pods import Source
from gpumem_operator.injection.environment import Environment, Own, Variables


def variables(source: Source, frozen_bytes: int | None, environment: Environment) -> Variables:
    """GPUMEM_LIMIT_SOURCE and, where there is one, the limit per GPU in bytes.

    An author's own variables with our prefix go.
    """
    wanted = [Own(names.LIMIT_SOURCE_ENV, source)]
    if frozen_bytes is not None:
        wanted.append(Own(names.LIMIT_BYTES_ENV, str(frozen_bytes)))
    return Variables(tuple(wanted), removed=reserved(environment))


def reserved(environment: Environment) -> frozenset[str]:
    """Variables of the container that carry our prefix."""
    return frozenset(environment.names_with_prefix(names.ENV_PREFIX))
