"""The declaration, frozen into the container: from creation on only this and resources count."""

from dataclasses import dataclass

from gpumem_operator import names
from gpumem_operator.api.pods import Source
from gpumem_operator.api.seal import Seal
from gpumem_operator.injection.environment import Environment, Own, Variables


@dataclass(frozen=True)
class Sealing:
    """How the declarations of one pod are sealed."""

    namespace: str
    seal: Seal | None
    """None offline, where nobody has the key: the declaration is shown without a seal."""

    def variables(self, container: str, source: Source, limit_bytes: str | None) -> list[Own]:
        if self.seal is None:
            return []
        sealed = self.seal.of(self.namespace, container, source=source, limit_bytes=limit_bytes)
        return [Own(names.SEAL_ENV, sealed)]


def variables(
    container: str,
    source: Source,
    *,
    frozen_bytes: int | None,
    environment: Environment,
    sealing: Sealing,
) -> Variables:
    """GPUMEM_LIMIT_SOURCE, the limit per GPU in bytes where there is one, and their seal.

    An author's own variables with our prefix go.
    """
    limit_bytes = None if frozen_bytes is None else str(frozen_bytes)
    wanted = [Own(names.LIMIT_SOURCE_ENV, source)]
    if limit_bytes is not None:
        wanted.append(Own(names.LIMIT_BYTES_ENV, limit_bytes))
    wanted.extend(sealing.variables(container, source, limit_bytes))
    return Variables(tuple(wanted), removed=reserved(environment))


def reserved(environment: Environment) -> frozenset[str]:
    """Variables of the container that carry our prefix."""
    return frozenset(environment.names_with_prefix(names.ENV_PREFIX))
