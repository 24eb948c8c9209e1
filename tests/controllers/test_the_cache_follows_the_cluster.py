"""Events and lists overlap and come late: the cache still ends up with what the cluster holds."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controllers.stored import Raw, managed_pod, pod
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.entries import pod_entry, slim_pod
from gpumem_operator.controllers.table import Key, Table
from gpumem_operator.ledger.charge import Rates, charge_pod, is_charged


def raw(name: str, version: int, uid: str | None = None, value: str = "") -> Raw:
    metadata = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "value": value or str(version)}


def table() -> Table[str]:
    return Table(lambda found: str(found["value"]))


def contents(found: Table[str]) -> dict[str, str]:
    return {key[1]: row.value for key, row in found.rows()}


def test_an_older_version_never_replaces_a_newer_one() -> None:
    found = table()
    found.see(raw("a", 10))
    found.see(raw("a", 9))
    assert contents(found) == {"a": "10"}


def test_versions_are_compared_as_numbers() -> None:
    found = table()
    found.see(raw("a", 9))
    found.see(raw("a", 10))
    assert contents(found) == {"a": "10"}


def test_an_object_that_a_broken_watch_never_reported_as_gone_goes_with_the_next_list() -> None:
    found = table()
    found.see(raw("a", 5))
    found.see(raw("b", 6))
    found.begin_list()
    found.see(raw("b", 6))
    found.end_list({"uid-b"}, "20")
    assert contents(found) == {"b": "6"}


def test_an_object_that_is_younger_than_the_list_stays() -> None:
    found = table()
    found.begin_list()
    found.see(raw("new", 21))
    found.end_list(set(), "20")
    assert contents(found) == {"new": "21"}


def test_an_object_that_went_away_during_the_list_does_not_come_back_with_it() -> None:
    found = table()
    found.see(raw("a", 5))
    found.begin_list()
    found.drop(("", "a"), "uid-a")
    found.see(raw("a", 5))
    found.end_list({"uid-a"}, "20")
    assert contents(found) == {}


def test_the_end_of_a_namesake_does_not_take_its_successor_away() -> None:
    found = table()
    found.see(raw("a", 5, uid="first"))
    found.see(raw("a", 9, uid="second"))
    found.drop(("", "a"), "first")
    assert contents(found) == {"a": "9"}


def test_listeners_hear_of_changes_and_not_of_heartbeats() -> None:
    found = table()
    heard: list[tuple[Key, str | None, str | None]] = []
    found.listeners.append(lambda key, old, new: heard.append((key, old, new)))
    found.see(raw("a", 1, value="x"))
    found.see(raw("a", 2, value="x"))
    found.see(raw("a", 3, value="y"))
    found.drop(("", "a"), "uid-a")
    key = ("", "a")
    assert heard == [(key, None, "x"), (key, "x", "y"), (key, "y", None)]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[str, int]], list[int]]:
    """Objects with the version at which each was made, and the versions at which one went away."""
    made = [(f"o{index}", index * 10) for index in range(1, draw(st.integers(1, 6)))]
    ends = [draw(st.integers(version + 1, 99)) for _, version in made]
    return made, ends


@given(histories(), st.integers(0, 100), st.randoms())
def test_whatever_the_watch_missed_one_list_makes_good(
    history: tuple[list[tuple[str, int]], list[int]], moment: int, random: Any
) -> None:
    made, ends = history
    found = table()
    events = [(version, "made", name) for name, version in made]
    events += [(end, "gone", name) for (name, _), end in zip(made, ends, strict=True)]
    listed = {
        name: version
        for (name, version), end in zip(made, ends, strict=True)
        if version <= moment < end
    }
    before = [event for event in events if event[0] <= moment and random.random() < 0.5]
    for version, what, name in sorted(before):
        found.see(raw(name, version)) if what == "made" else found.drop(("", name), f"uid-{name}")
    found.begin_list()
    late = sorted(event for event in events if event[0] > moment and random.random() < 0.5)
    pending: list[tuple[int, str, str]] = [(0, "list", name) for name in listed]
    for _, what, name in interleaved(pending, late, random):
        if what == "list":
            found.see(raw(name, listed[name]))
        elif what == "made":
            found.see(raw(name, dict(made)[name]))
        else:
            found.drop(("", name), f"uid-{name}")
    found.end_list({f"uid-{name}" for name in listed}, str(moment))
    alive_by_list_and_events = set(listed) | {name for _, what, name in late if what == "made"}
    alive_by_list_and_events -= {name for _, what, name in late if what == "gone"}
    assert set(contents(found)) == alive_by_list_and_events


def interleaved(one: list[Any], other: list[Any], random: Any) -> list[Any]:
    """Both lists in one, each in its own order."""
    one, other, result = list(one), list(other), []
    while one or other:
        source = one if one and (not other or random.random() < 0.5) else other
        result.append(source.pop(0))
    return result


@given(
    gpus=st.integers(0, 4),
    memory=st.sampled_from([None, "8Gi", "1500M"]),
    source=st.sampled_from([None, "Policy", "Annotation"]),
    limit=st.sampled_from([None, 5 * 2**30]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    gates=st.sampled_from([(), ("gpumemory.dev/quota",), ("other/gate",)]),
    whole=st.sampled_from([None, 80 * 2**30]),
)
def test_what_is_kept_of_a_pod_is_charged_like_the_whole_pod(**given_: Any) -> None:
    values = Values()
    whole = pod(
        gpus=given_["gpus"],
        memory=given_["memory"],
        source=given_["source"],
        limit_bytes=given_["limit"],
        phase=given_["phase"],
        gates=given_["gates"],
    )
    whole["spec"]["initContainers"] = [
        {**whole["spec"]["containers"][0], "name": "first", "restartPolicy": "Always"},
        {**whole["spec"]["containers"][0], "name": "second"},
    ]
    whole["spec"]["containers"][0]["env"].append({"name": "SECRET", "value": "not kept"})
    slim = slim_pod(whole, values.memory_resource)
    rates = Rates(given_["whole"])
    kept = charge_pod(slim, values, rates=rates)
    assert kept.charge_bytes == charge_pod(whole, values, rates=rates).charge_bytes
    assert is_charged(slim) == is_charged(whole)
    assert "not kept" not in str(slim)
    again, first = pod_entry(slim, values), pod_entry(whole, values)
    assert again == first


def test_what_decides_about_a_managed_pod_is_kept() -> None:
    entry = pod_entry(managed_pod("p", policy="training", fingerprint="abc"), Values())
    assert entry.handled
    assert entry.gpu
    assert entry.annotations == {"gpumemory.dev/policy-hash": "abc"}
    assert entry.labels["gpumemory.dev/policy"] == "training"
