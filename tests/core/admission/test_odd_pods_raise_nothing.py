"""Pods that no API server would send: files have them."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import applied, around
from core.admission.properties import VALUES, Records
from core.generated import ALLOCATOR, CAPS, deciders
from gpumem_operator import names
from gpumem_operator.admission.review import review_ephemeral_containers, review_pod

_odd_text: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.text(max_size=8), st.integers(), st.just("")
)
_odd_env: st.SearchStrategy[Any] = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from([*CAPS, *ALLOCATOR, names.PYTHON_PATH_ENV, "", None]),
            "value": _odd_text,
            "valueFrom": st.sampled_from([None, {}, {"fieldRef": {}}]),
        },
    ),
    max_size=3,
)
_odd_quantity: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.integers(), st.text(max_size=6), st.floats(), st.booleans()
)
_odd_container: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "name": st.one_of(st.none(), st.sampled_from(["", "a", names.SIDECAR_CONTAINER])),
        "env": st.none() | _odd_env,
        "envFrom": st.none() | st.just([]),
        "ports": st.none() | st.just([{}]),
        "resources": st.one_of(
            st.none(),
            st.fixed_dictionaries(
                {},
                optional={
                    "limits": st.none()
                    | st.dictionaries(
                        st.sampled_from(
                            ["nvidia.com/gpu", "nvidia.com/memory", "nvidia.com/mig-1g.0gb", "cpu"]
                        ),
                        _odd_quantity,
                    )
                },
            ),
        ),
        "volumeMounts": st.none() | st.just([{}]) | st.just([{"name": None, "mountPath": None}]),
        "restartPolicy": st.sampled_from([None, "", "Always"]),
    },
)
_odd_map: st.SearchStrategy[Any] = st.none() | st.dictionaries(
    st.sampled_from(
        [
            names.LIMIT_ANNOTATION,
            f"{names.LIMIT_ANNOTATION}.",
            f"{names.LIMIT_ANNOTATION}.a",
            names.PROCESSES_PER_GPU_ANNOTATION,
            names.PYTHON_PATH_ANNOTATION,
            names.POLICY_LABEL,
        ]
    ),
    st.one_of(st.none(), st.integers(), st.text(max_size=5), st.just("8Gi")),
)
_odd_pods: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.none()
        | st.fixed_dictionaries({}, optional={"labels": _odd_map, "annotations": _odd_map}),
        "spec": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "containers": st.none() | st.lists(_odd_container, max_size=2),
                "initContainers": st.none() | st.lists(_odd_container, max_size=2),
                "ephemeralContainers": st.none() | st.lists(_odd_container, max_size=1),
                "volumes": st.none() | st.just([{}]),
                "os": st.none() | st.just({}),
            },
        ),
    },
)


@settings(max_examples=300, deadline=None)
@given(_odd_pods, deciders)
@example({}, [])
def test_no_pod_however_odd_raises(raw: Any, records: Records) -> None:
    surroundings = around(*records)
    before = copy.deepcopy(raw)
    verdict = review_pod(raw, surroundings, VALUES)
    assert raw == before
    if verdict.refusal is None:
        applied(raw, verdict)
    review_ephemeral_containers(raw, raw, surroundings, VALUES)
    review_ephemeral_containers(raw, {}, surroundings, VALUES)
