"""One pod in, one verdict out: the whole of admission, without any I/O."""

from collections.abc import Mapping
from typing import Any

from gpumem_operator.admission.verdict import Verdict
from gpumem_operator.api.records import Surroundings
from gpumem_operator.api.values import Values


def review_pod(pod: Mapping[str, Any], surroundings: Surroundings, values: Values) -> Verdict:
    """The verdict on a pod that is being created in the namespace of `surroundings`."""
    raise NotImplementedError


def review_ephemeral_containers(
    pod: Mapping[str, Any], old_pod: Mapping[str, Any], surroundings: Surroundings, values: Values
) -> Verdict:
    """The verdict on ephemeral containers that are being added to a stored pod."""
    raise NotImplementedError
