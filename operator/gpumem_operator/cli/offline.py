"""Admission of the pods in files, by the code that the webhook runs, without a cluster."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import jsonpatch

from gpumem_operator import names
from gpumem_operator.admission.decider import Decider, decide
from gpumem_operator.admission.review import review_pod
from gpumem_operator.admission.verdict import Verdict
from gpumem_operator.api.pods import gather, is_gpu_pod
from gpumem_operator.api.records import (
    NamespaceRecord,
    Surroundings,
    namespace_record,
    tenants_of,
)
from gpumem_operator.api.values import Values
from gpumem_operator.cli.documents import Documents
from gpumem_operator.cli.fields import unknown_fields
from gpumem_operator.cli.workloads import Workload

_PREFIX: Final = f"{names.GROUP}: "


@dataclass(frozen=True)
class Admitted:
    """One pod of the files after admission."""

    workload: Workload
    surroundings: Surroundings
    verdict: Verdict
    pod: Mapping[str, Any]
    """As it would be stored; as it was written where it is refused."""
    ignored: bool
    """Whether its namespace is left out of admission."""
    asks_for_gpus: bool

    @property
    def decider(self) -> Decider | None:
        if self.ignored:
            return None
        facts = gather(self.pod, names.MEMORY_RESOURCE, namespace=self.workload.namespace)
        return decide(facts.labels, self.surroundings)

    @property
    def warnings(self) -> list[str]:
        texts = list(unknown_fields(self.workload.pod))
        if self.asks_for_gpus and self.workload.warning is not None:
            texts.append(self.workload.warning)
        return texts + [text.removeprefix(_PREFIX) for text in self.verdict.warnings]


def admit(documents: Documents, values: Values) -> Iterator[Admitted]:
    """Every pod of the files, in their order, with its verdict."""
    for workload in documents.workloads:
        namespace = _namespace(workload.namespace, documents)
        surroundings = Surroundings(
            namespace,
            tuple(p for p in documents.policies if p.namespace == namespace.name),
            tenants_of(namespace, tuple(documents.tenants)),
        )
        ignored = _ignored(namespace, values)
        created = _as_created(workload)
        verdict = Verdict() if ignored else review_pod(created, surroundings, values)
        pod = workload.pod
        if verdict.operations:
            # Pods share parts of their operations; what is shown of them shall not.
            pod = jsonpatch.apply_patch(pod, deepcopy(list(verdict.operations)))
        asks = is_gpu_pod(workload.pod, values.memory_resource)
        yield Admitted(workload, surroundings, verdict, pod, ignored, asks)


def _as_created(workload: Workload) -> Mapping[str, Any]:
    """The pod as its controller would have it made; a pod that stands for itself as it is."""
    if workload.replicas is None:
        return workload.pod
    owner = {"controller": True, "name": workload.name}
    return {**workload.pod, "metadata": {**workload.pod["metadata"], "ownerReferences": [owner]}}


def _namespace(name: str, documents: Documents) -> NamespaceRecord:
    for record in documents.namespaces:
        if record.name == name:
            return record
    return namespace_record({"metadata": {"name": name}})


def _ignored(namespace: NamespaceRecord, values: Values) -> bool:
    return (
        namespace.name in values.ignored_namespaces
        or namespace.labels.get(names.IGNORE_LABEL) == "true"
    )
