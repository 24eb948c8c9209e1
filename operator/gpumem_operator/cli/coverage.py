"""What the files leave out: an answer that lacks a policy or a tenant looks like any other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from gpumem_operator.api.records import TenantRecord
from gpumem_operator.api.selector import LabelSelector
from gpumem_operator.cli.documents import Documents
from gpumem_operator.cli.offline import Admitted
from gpumem_operator.cli.remarks import Remark

_MOST_NAMED: Final = 3


def gaps(documents: Documents, admitted: Sequence[Admitted]) -> Iterator[Remark]:
    """Warnings about namespaces and pods about which the files do not say enough."""
    asking = [one for one in admitted if one.asks_for_gpus and not one.ignored]
    yield from _unknown_namespaces(documents, asking)
    yield from _tenants_of_nothing(documents, admitted)
    for one in asking:
        if one.verdict.refusal is None and one.decider is None:
            text = "no policy or tenant of these files decides for it: it would be stored as it is"
            yield Remark(text, one.workload.title)


def _unknown_namespaces(documents: Documents, asking: Iterable[Admitted]) -> Iterator[Remark]:
    known = {record.name for record in documents.namespaces}
    spaces = {one.surroundings.namespace.name: one.surroundings.namespace for one in asking}
    for name, namespace in spaces.items():
        if name not in known and any(
            _depends_on_others(tenant, namespace.labels) for tenant in documents.tenants
        ):
            yield Remark(
                f"namespace {name} is in no file: its labels are not known, so tenants that select "
                "it by label may be missing"
            )


def _tenants_of_nothing(documents: Documents, admitted: Iterable[Admitted]) -> Iterator[Remark]:
    """Tenants that no namespace of the files is in, and none can be that is in no file."""
    spaces = {one.surroundings.namespace.name: one.surroundings.namespace for one in admitted}
    written = {record.name: record for record in documents.namespaces}
    every = (spaces | written).values()
    for tenant in documents.tenants:
        if not every or tenant.spec is None:
            continue
        may_be_in = any(
            tenant.spec.namespace_selector.matches(one.labels)
            or (one.name not in written and _depends_on_others(tenant, one.labels))
            for one in every
        )
        if not may_be_in:
            named = ", ".join(sorted(one.name for one in every)[:_MOST_NAMED])
            more = f" and {len(every) - _MOST_NAMED} more" if len(every) > _MOST_NAMED else ""
            yield Remark(
                f"tenant {tenant.name} selects no namespace of these files ({named}{more}): nothing"
                " is charged to it; compare its spec.namespaceSelector with the namespaces' labels"
            )


def _depends_on_others(tenant: TenantRecord, labels: Mapping[str, str]) -> bool:
    """Whether labels other than these, which are known, could make it a namespace of the tenant."""
    if tenant.spec is None:
        return False
    selector = tenant.spec.namespace_selector
    keys = {*selector.match_labels, *(one.key for one in selector.match_expressions)}
    return not keys <= labels.keys() and _may_match(selector, labels)


def _may_match(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether the parts of the selector that these labels decide all hold."""
    return all(
        labels[key] == value for key, value in selector.match_labels.items() if key in labels
    ) and all(one.matches(labels) for one in selector.match_expressions if one.key in labels)
