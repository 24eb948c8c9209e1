"""TensorFlow: growth is a variable, a limit is not one (the shim sets it).

The variable takes exactly `true` or `false`; `1` and `True` are logged and ignored. Source: strings
of the TensorFlow 2.21 binary.
"""

from gpumem_operator import names
from gpumem_operator.injection.environment import Environment, Own, Setting, Variables
from gpumem_operator.injection.target import Target


def variables(target: Target, environment: Environment) -> Variables:
    """TF_FORCE_GPU_ALLOW_GROWTH, and for the shim the mode that the policy wants."""
    mode = target.spec.frameworks.tensorflow.mode
    wanted: list[Setting | Own] = []
    if target.spec.injection.shim == "Enabled":
        wanted.append(Own(names.TENSORFLOW_MODE_ENV, mode))
    if mode == "Growth":
        wanted.append(Setting(names.TENSORFLOW_GROWTH_ENV, "true"))
    theirs = environment.readable(names.TENSORFLOW_GROWTH_ENV)
    warnings: tuple[str, ...] = ()
    if theirs not in (None, "true", "false") and not (
        mode == "Growth" and target.spec.injection.existing_env == "Override"
    ):
        warnings = (
            f"{names.TENSORFLOW_GROWTH_ENV}={theirs} is ignored by TensorFlow: it takes exactly "
            "true or false",
        )
    return Variables(tuple(wanted), warnings=warnings)
