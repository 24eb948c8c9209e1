"""TensorFlow: growth is a variable, a limit is not one (the shim sets it, and knows the mode).

The variable takes exactly `true` or `false`; `1` and `True` are logged and ignored. Source: strings
of the TensorFlow 2.21 binary.
"""

from gpumem_operator import names
from gpumem_operator.injection.environment import Environment, Setting, Variables
from gpumem_operator.injection.target import Target


def variables(target: Target, environment: Environment) -> Variables:
    """TF_FORCE_GPU_ALLOW_GROWTH."""
    growing = target.spec.frameworks.tensorflow.mode == "Growth"
    wanted = (Setting(names.TENSORFLOW_GROWTH_ENV, "true"),) if growing else ()
    theirs = environment.readable(names.TENSORFLOW_GROWTH_ENV)
    warnings: tuple[str, ...] = ()
    if (
        theirs is not None
        and theirs not in ("true", "false")
        and not (growing and target.spec.injection.existing_env == "Override")
    ):
        warnings = (
            f"{names.TENSORFLOW_GROWTH_ENV}={theirs[:64]} is ignored by TensorFlow: it takes "
            "exactly true or false",
        )
    return Variables(wanted, warnings=warnings)
