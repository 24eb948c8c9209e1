"""One sample: what NVML lists, what the kernel and the shims tell about it, and the picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpumem_sidecar.assignments import assignments_of
from gpumem_sidecar.attribution import Sender, Surroundings, Viewpoint, attribute
from gpumem_sidecar.cgroups import place_of
from gpumem_sidecar.mps_limit import text_of
from gpumem_sidecar.picture import Picture
from gpumem_sidecar.pod_resources import Answer
from gpumem_sidecar.processes import Facts, facts_of, in_child_namespace, is_alone
from gpumem_sidecar.reading import Reading
from gpumem_sidecar.run_folder import RunFolder
from gpumem_sidecar.shim_state import Key, State

EMPTY_DIR = "volumes/kubernetes.io~empty-dir/gpumem-run"
"""Of a pod, below the kubelet's folder of that pod."""


def viewpoint_of(
    sender: Sender, pod_uid: str | None, *, namespace_of_pod: bool = False
) -> Viewpoint:
    """Where this process stands. Who created the pod knows whether the PID namespace is its own."""
    child = in_child_namespace()
    return Viewpoint(sender, pod_uid, child, child and namespace_of_pod, is_alone())


class Sampler:
    """Takes samples. `read` answers None where NVML did not answer in time."""

    def __init__(
        self,
        read: Callable[[], Reading | None],
        viewpoint: Viewpoint,
        *,
        run_folder: str = "",
        pods_folder: str = "",
        given: Callable[[], Answer] = Answer,
    ) -> None:
        """`run_folder` is the sidecar's own, `pods_folder` the kubelet's with all pods; `given`
        asks the kubelet what it gave to containers."""
        self._read = read
        self._viewpoint = viewpoint
        self._own = RunFolder(run_folder) if run_folder else None
        self._pods_folder = pods_folder
        self._given = given
        self._ignored_of_pods = 0
        self.answered = False
        """Whether NVML answered, if only with an error, when the last sample was taken."""
        self.kubelet_failure: str | None = None
        """Why the kubelet did not say what it gave to containers; None where it did."""

    @property
    def ignored_files(self) -> int:
        """State files so far that were not what they should be."""
        return self._ignored_of_pods + (self._own.ignored if self._own else 0)

    def sample(self) -> Picture:
        """The picture of this moment."""
        reading = self._read()
        self.answered = reading is not None
        if reading is None:
            reading = Reading(unknown="Timeout")
        pids = {listed.pid for card in reading.cards for listed in card.processes}
        facts = {pid: known for pid in pids if (known := facts_of(pid)) is not None}
        states = self._states_in_pod(facts) if self._own else self._states_in_pods(facts)
        found = Surroundings(facts, states, _mps_limits(reading, facts))
        picture = attribute(reading, self._viewpoint, found)
        answer = self._given()
        self.kubelet_failure = answer.failure
        return picture._replace(assignments=assignments_of(answer.given, picture.gpus))

    def _states_in_pod(self, facts: dict[int, Facts]) -> dict[Key, State]:
        """All of the living: where NVML lists nobody, the shims are the only source."""
        assert self._own is not None
        if self._viewpoint.alone:
            return {}  # their PIDs are those of other namespaces, and the dead look like the living
        pod_uid = self._viewpoint.pod_uid or ""
        living = {}
        for state in self._own.states():
            known = facts.get(state.pid) or facts_of(state.pid)
            if known is not None and known.start_time == state.start_time:
                living[Key(pod_uid, state.pid, state.start_time)] = state
        return living

    def _states_in_pods(self, facts: dict[int, Facts]) -> dict[Key, State]:
        """Those of the processes that NVML lists, from the kubelet's folder of each pod."""
        wanted: dict[str, set[tuple[int, int]]] = {}
        for known in facts.values():
            if uid := place_of(known.cgroup).pod_uid:
                wanted.setdefault(uid, set()).add((known.inner_pid, known.start_time))
        found: dict[Key, State] = {}
        for uid, keys in wanted.items() if self._pods_folder else ():
            found |= _by_key(uid, self._states_of(uid, keys))
        return found

    def _states_of(self, uid: str, keys: set[tuple[int, int]]) -> list[State]:
        folder = RunFolder(self._pods_folder, (uid, *EMPTY_DIR.split("/")))
        states = folder.states(keys)
        self._ignored_of_pods += folder.ignored
        return states


def _mps_limits(reading: Reading, facts: dict[int, Facts]) -> dict[int, str]:
    """Of clients of MPS that are still who they were after their environment was read."""
    clients = {one.pid for card in reading.cards for one in card.processes if one.mps}
    texts = {pid: text for pid in clients & facts.keys() if (text := text_of(pid)) is not None}
    return {pid: text for pid, text in texts.items() if facts_of(pid) == facts[pid]}


def _by_key(uid: str, states: Iterable[State]) -> dict[Key, State]:
    return {Key(uid, state.pid, state.start_time): state for state in states}
