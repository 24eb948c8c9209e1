"""One sample: what NVML lists, what the kernel and the shims tell about it, and the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpumem_sidecar.assignments import assignments_of
from gpumem_sidecar.attribution import Sender, Surroundings, Viewpoint, attribute, why_not_whole
from gpumem_sidecar.cgroups import place_of
from gpumem_sidecar.mps_limit import text_of
from gpumem_sidecar.picture import Picture
from gpumem_sidecar.pod_resources import Answer
from gpumem_sidecar.processes import Facts, Unreadable, facts_of, in_child_namespace, is_alone
from gpumem_sidecar.reading import Reading
from gpumem_sidecar.run_folder import OF_ONE_POD, Allowance, Found, ProcessKey, RunFolder
from gpumem_sidecar.shim_state import Key, State

EMPTY_DIR = "volumes/kubernetes.io~empty-dir/gpumem-run"
"""Of a pod, below the kubelet's folder of that pod."""
OF_A_NODE = Allowance(64 * 1024, 4 * 2**20)
"""For the files of all pods of a node together."""

Claims = tuple[dict[Key, State], set[Key]]
"""What shims wrote, and the processes of which that was not read."""


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
        count_again: Callable[[], None] = lambda: None,
    ) -> None:
        """`run_folder` is the sidecar's own, `pods_folder` the kubelet's with all pods; `given`
        asks the kubelet what it gave to containers; `count_again` hears where that is a GPU which
        NVML does not list."""
        self._read = read
        self._viewpoint = viewpoint
        self._own = RunFolder(run_folder) if run_folder else None
        self._pods_folder = pods_folder
        self._given = given
        self._count_again = count_again
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
        facts, unreadable = _facts(reading)
        states, unread = self._in_pod(reading, facts) if self._own else self._in_pods(facts)
        found = Surroundings(facts, states, unread, unreadable, _mps_limits(reading, facts))
        picture = attribute(reading, self._viewpoint, found)
        answer = self._given()
        self.kubelet_failure = answer.failure
        assignments = assignments_of(answer.given, picture.gpus)
        if {gpu for one in assignments for gpu in one.gpus} - {gpu.uuid for gpu in picture.gpus}:
            self._count_again()
        return picture._replace(assignments=assignments)

    def _in_pod(self, reading: Reading, facts: Mapping[int, Facts]) -> Claims:
        """Of the processes that NVML lists; where it lists nobody, the shims are the only source,
        and all states of the living count."""
        assert self._own is not None
        pod_uid = self._viewpoint.pod_uid or ""
        why = why_not_whole(reading, self._viewpoint)
        if why is None:
            keys = {_key(known) for known in facts.values()}
            return _claims(pod_uid, self._own.of(keys))
        if why == "ProcessesNotShared":
            return {}, set()  # their PIDs are those of other namespaces: dead and living look alike
        living = (state for state in self._own.states() if _is_living(state))
        return _claims(pod_uid, Found(tuple(living)))

    def _in_pods(self, facts: Mapping[int, Facts]) -> Claims:
        """Of the processes that NVML lists, from the kubelet's folder of each pod."""
        wanted: dict[str, set[ProcessKey]] = {}
        for known in facts.values():
            if self._pods_folder and (uid := place_of(known.cgroup).pod_uid):
                wanted.setdefault(uid, set()).add(_key(known))
        each = OF_ONE_POD.within(OF_A_NODE, len(wanted))
        states: dict[Key, State] = {}
        unread: set[Key] = set()
        for uid, keys in wanted.items():
            folder = RunFolder(self._pods_folder, (uid, *EMPTY_DIR.split("/")))
            found, left_out = _claims(uid, folder.of(keys, each))
            self._ignored_of_pods += folder.ignored
            states |= found
            unread |= left_out
        return states, unread


def _facts(reading: Reading) -> tuple[dict[int, Facts], set[int]]:
    """What the kernel tells about the listed processes, and of whom it does not tell."""
    facts: dict[int, Facts] = {}
    unreadable: set[int] = set()
    for pid in {listed.pid for card in reading.cards for listed in card.processes}:
        match facts_of(pid):
            case Facts() as known:
                facts[pid] = known
            case Unreadable():
                unreadable.add(pid)
    return facts, unreadable


def _key(known: Facts) -> ProcessKey:
    return known.inner_pid, known.start_time


def _is_living(state: State) -> bool:
    known = facts_of(state.pid)
    return isinstance(known, Facts) and known.start_time == state.start_time


def _claims(uid: str, found: Found) -> Claims:
    states = {Key(uid, state.pid, state.start_time): state for state in found.states}
    return states, {Key(uid, *key) for key in found.unread}


def _mps_limits(reading: Reading, facts: dict[int, Facts]) -> dict[int, str]:
    """Of clients of MPS that are still who they were after their environment was read."""
    clients = {one.pid for card in reading.cards for one in card.processes if one.mps}
    texts = {pid: text for pid in clients & facts.keys() if (text := text_of(pid)) is not None}
    return {pid: text for pid, text in texts.items() if facts_of(pid) == facts[pid]}
