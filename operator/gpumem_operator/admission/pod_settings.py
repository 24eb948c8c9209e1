"""What a plan decides once for a whole pod: shim, sidecar, and what the pod's fields rule out."""

from dataclasses import dataclass

from gpumem_operator import names
from gpumem_operator.admission.decider import Decider
from gpumem_operator.admission.declaration import Declaration
from gpumem_operator.admission.enforcer_needs import sets_driver_limits
from gpumem_operator.api.managers import Manager
from gpumem_operator.api.pods import PodFacts
from gpumem_operator.api.policy import DatasetCache, DefaultPolicySpec
from gpumem_operator.api.quantity import whole_number
from gpumem_operator.api.values import Values
from gpumem_operator.api.violation import Violation
from gpumem_operator.injection.driver import can_be_limited
from gpumem_operator.injection.target import Target


@dataclass(frozen=True)
class PodSettings:
    """What is the same for all containers of the pod."""

    shim: bool
    sidecar: bool
    limited_by: tuple[Manager, ...]
    """Managers of the pod to whom limiting it is left."""
    share_process_namespace: bool | None
    """As in the plan: False takes back what an earlier admission set."""
    interval_seconds: int
    image_python_path: str
    processes_per_gpu: int
    read_only_volumes: frozenset[str]
    dataset_cache: DatasetCache | None
    driver_limits: bool
    warnings: tuple[str, ...]
    violations: tuple[Violation, ...]

    @staticmethod
    def of(facts: PodFacts, decider: Decider, values: Values) -> "PodSettings":
        spec = decider.spec
        limited_by = _limited_by(facts, values)
        # Nothing of ours runs there, and nothing can be mounted.
        fixed = facts.windows or facts.mirror
        bare = fixed or bool(limited_by)
        monitored = decider.monitoring(values) == "Sidecar" and not bare
        shimmed = (
            decider.active and spec is not None and spec.injection.shim == "Enabled" and not bare
        )
        processes, violations = _processes_per_gpu(facts)
        shared = facts.share_process_namespace is not False and not facts.host_pid
        return PodSettings(
            shim=shimmed,
            sidecar=monitored,
            limited_by=limited_by,
            share_process_namespace=_share(facts, wanted=monitored and shared),
            interval_seconds=spec.monitoring.interval_seconds if spec else 0,
            image_python_path=_image_python_path(facts, spec),
            processes_per_gpu=processes,
            read_only_volumes=facts.read_only_volumes,
            dataset_cache=spec.dataset_cache if decider.active and spec and not fixed else None,
            driver_limits=sets_driver_limits(decider, values),
            warnings=tuple(_limits_of_the_pod(facts, monitored=monitored)) if spec else (),
            violations=violations,
        )

    def target(self, row: Declaration, spec: DefaultPolicySpec) -> Target:
        """One container of the pod, as the parts of the plan see it."""
        return Target(
            container_name=row.container.name,
            gpu_count=row.container.gpu_count,
            frozen_bytes=row.frozen_bytes,
            spec=spec,
            image_python_path=self.image_python_path,
            processes_per_gpu=self.processes_per_gpu,
            driver_limits=self.driver_limits and can_be_limited(row.container),
        )


def _limited_by(facts: PodFacts, values: Values) -> tuple[Manager, ...]:
    """See the value `foreignManagers`."""
    return tuple(one for one in facts.managers if one.name in values.foreign_managers)


def _share(facts: PodFacts, *, wanted: bool) -> bool | None:
    return True if wanted else False if facts.shared_by_admission else None


def _limits_of_the_pod(facts: PodFacts, *, monitored: bool) -> list[str]:
    """What this pod's own fields make impossible."""
    warnings = []
    if facts.windows:
        warnings.append("a Windows pod gets variables only: no shim, and its use is not measured")
    if facts.host_pid:
        warnings.append("hostPID: the pod sees every process of its node, and so does the sidecar")
    elif monitored and facts.share_process_namespace is False:
        warnings.append(
            "shareProcessNamespace is false: what the containers hold can not be measured by the "
            "sidecar"
        )
    return warnings


def _processes_per_gpu(facts: PodFacts) -> tuple[int, tuple[Violation, ...]]:
    text = facts.annotations.get(names.PROCESSES_PER_GPU_ANNOTATION)
    if text is None:
        return 1, ()
    processes = whole_number(str(text))
    if processes is not None and 1 <= processes <= 64:
        return processes, ()
    path = f'metadata.annotations["{names.PROCESSES_PER_GPU_ANNOTATION}"]'
    said = f"{str(text)[:32]!r} is not a whole number from 1 to 64"
    step = "give the number of processes that share one GPU, or remove the annotation"
    return 1, (Violation(path, f"{said}: {step}"),)


def _image_python_path(facts: PodFacts, spec: DefaultPolicySpec | None) -> str:
    annotated = facts.annotations.get(names.PYTHON_PATH_ANNOTATION)
    return str(annotated) if annotated else spec.injection.image_python_path if spec else ""
