"""PyTorch: the policy's allocator keys, merged key by key with the author's own.

PYTORCH_CUDA_ALLOC_CONF works in every release; PYTORCH_ALLOC_CONF is ignored by 2.9 and loses
against the older name from 2.10 on. So the name that the author used is the one that is edited, and
the older one where both or neither are set. Source: torch headers 2.0.1 to 2.14.1, runs of 2.14.1.
"""

from collections.abc import Iterator, Mapping

from gpumem_operator import names
from gpumem_operator.api.pytorch_allocator import (
    FRACTION_KEY,
    KEYS,
    AllocatorSyntaxError,
    format_config,
    parse_config,
    problem_of_value,
)
from gpumem_operator.injection.environment import Environment, Own, Setting, Variables
from gpumem_operator.injection.target import Target


def variables(target: Target, environment: Environment) -> Variables:
    """The allocator configuration of one container."""
    ours = target.spec.frameworks.pytorch.allocator_config
    name = _name_in_use(environment)
    existing = target.spec.injection.existing_env
    if not environment.has(name):
        return Variables((Setting(name, format_config(ours)),)) if ours else Variables()
    if environment.unreadable(name):
        warning = f"{name} comes from a reference: it stays as it is and can not be checked"
        return Variables(warnings=(warning,))
    if ours and existing == "Override":
        return Variables((Own(name, format_config(ours)),))
    try:
        theirs = parse_config(environment.readable(name) or "")
    except AllocatorSyntaxError as error:
        return Variables(problems=(f"{name}: {error}",))
    return _merged(name, theirs, ours if existing == "Merge" else {})


def _merged(name: str, theirs: Mapping[str, str], ours: Mapping[str, str]) -> Variables:
    """The author's keys as they are, and those of ours that the author did not set."""
    missing = {key: value for key, value in ours.items() if key not in theirs}
    return Variables(
        wanted=(Own(name, format_config({**theirs, **missing})),) if missing else (),
        warnings=tuple(f"{name}: {text}" for text in _doubts(theirs)),
        added=tuple(f"{name}:{key}" for key in missing),
    )


def _name_in_use(environment: Environment) -> str:
    newer_only = environment.has(names.PYTORCH_NEW_CONF_ENV) and not environment.has(
        names.PYTORCH_CONF_ENV
    )
    return names.PYTORCH_NEW_CONF_ENV if newer_only else names.PYTORCH_CONF_ENV


def _doubts(settings: Mapping[str, str]) -> Iterator[str]:
    """What a release that we know would refuse; a newer one may know better, so it stays."""
    for key, value in settings.items():
        if key == FRACTION_KEY:
            yield (
                f"{key} is a share of whatever card the pod gets, and PyTorch before 2.10 fails "
                "on it at its first CUDA call"
            )
        elif key not in KEYS:
            yield f"PyTorch 2.0 to 2.14 have no key {key[:64]!r} and fail at their first CUDA call"
        elif (problem := problem_of_value(key, value)) is not None:
            yield problem[:192]
