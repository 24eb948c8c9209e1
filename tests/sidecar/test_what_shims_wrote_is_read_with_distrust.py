"""Users' programs can write to the run folder: what may be planted there, and what is read."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.reports.report import Report
from gpumem_sidecar.picture import Cap, Framework, Picture, Process, Server, Shim
from gpumem_sidecar.report import Header, encode, full
from gpumem_sidecar.run_folder import LARGEST_FILE, MOST_FILES, RunFolder
from gpumem_sidecar.shim_state import LARGEST, Reclaimed, State, parse

GOLDEN = Path(__file__).parents[1] / "golden" / "shim-state.json"


GPU = "GPU-11111111-0000-0000-0000-000000000001"
GIB = 2**30


def content(**changes: Any) -> bytes:
    return json.dumps(json.loads(GOLDEN.read_text()) | changes).encode()


@pytest.fixture
def container(tmp_path: Path) -> Path:
    folder = tmp_path / "run" / "main"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def run(container: Path) -> RunFolder:
    return RunFolder(str(container.parent))


def test_what_the_shim_writes_is_read(container: Path, run: RunFolder) -> None:
    (container / "4711-123456.json").write_bytes(GOLDEN.read_bytes())
    torch = Framework("torch", "2.9.0", (Cap(GPU, 7 * GIB),), None, 2, "Supported")
    cupy = Framework("cupy", "13.6.0", (), "NotStarted", None, "Supported")
    vllm = Server("vllm", "0.33.0", "gpu_memory_utilization", "0.92", "0.0498")
    claim = Shim((cupy, torch), 8 * GIB, GIB, 1, ((GPU, 744488960),), (vllm,))
    done = Reclaimed("a-1", "Done", GIB)
    assert run.states() == [State(4711, 123456, "main", claim, ((GPU, 7522484224),), done)]
    assert run.ignored == 0


def test_only_the_wanted_processes_are_opened(container: Path, run: RunFolder) -> None:
    (container / "4711-123456.json").write_bytes(content())
    (container / "4712-1.json").write_text("not opened, so not ignored")
    assert [state.pid for state in run.of({(4711, 123456)}).states] == [4711]
    assert run.ignored == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_counts_whoever_its_process_was_when_it_was_written(
    container: Path, run: RunFolder
) -> None:
    (container / "4711-123456.json").write_bytes(content())
    os.chown(container / "4711-123456.json", 65534, 65534)
    assert [state.pid for state in run.of({(4711, 123456)}).states] == [4711]


def test_no_folder_is_no_state(tmp_path: Path) -> None:
    assert RunFolder(str(tmp_path / "nowhere")).states() == []
    (tmp_path / "file").write_text("")
    assert RunFolder(str(tmp_path / "file")).states() == []


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A state that is outside of the run folder."""
    folder = tmp_path / "secret"
    folder.mkdir()
    (folder / "4711-123456.json").write_bytes(content())
    return folder


def plant_file_link(container: Path, secret: Path) -> None:
    (container / "4711-123456.json").symlink_to(secret / "4711-123456.json")


def plant_relative_link(container: Path, secret: Path) -> None:
    (container / "4711-123456.json").symlink_to(f"../../{secret.name}/4711-123456.json")


def plant_folder_link(container: Path, secret: Path) -> None:
    (container.parent / "other").symlink_to(secret)


def plant_pipe(container: Path, _: Path) -> None:
    os.mkfifo(container / "4711-123456.json")


def plant_socket(container: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        folder = os.open(container, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{folder}/4711-123456.json")
        os.close(folder)


def plant_folder(container: Path, _: Path) -> None:
    (container / "4711-123456.json").mkdir()


def plant_large_file(container: Path, _: Path) -> None:
    (container / "4711-123456.json").write_bytes(content(padding="x" * LARGEST_FILE))


def plant_sparse_file(container: Path, _: Path) -> None:
    with (container / "4711-123456.json").open("wb") as file:
        file.truncate(2**40)


def plant_container_of_no_name(container: Path, _: Path) -> None:
    folder = container.parent / "a\nb"
    folder.mkdir()
    (folder / "4711-123456.json").write_bytes(content())


PLANTS = [
    plant_file_link,
    plant_relative_link,
    plant_folder_link,
    plant_pipe,
    plant_socket,
    plant_folder,
    plant_large_file,
    plant_sparse_file,
    plant_container_of_no_name,
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_what_is_planted_is_ignored_and_counted(
    plant: Any, container: Path, secret: Path, run: RunFolder
) -> None:
    plant(container, secret)
    assert run.states() == []
    assert run.ignored == 1


def test_a_link_on_the_way_from_the_kubelet_s_folder_is_not_followed(
    tmp_path: Path, secret: Path
) -> None:
    volume = tmp_path / "pods" / "uid" / "volumes"
    volume.parent.mkdir(parents=True)
    volume.symlink_to(secret.parent)
    assert RunFolder(str(tmp_path / "pods"), ("uid", "volumes", "secret")).states() == []


def test_a_file_under_another_name_is_of_nobody(container: Path, run: RunFolder) -> None:
    (container / "4712-123456.json").write_bytes(content())
    assert run.states() == []


def test_the_folder_says_the_container(container: Path, run: RunFolder) -> None:
    (container / "4711-123456.json").write_bytes(content(container="other"))
    assert [state.container for state in run.states()] == ["main"]


def test_more_files_than_can_be_read_are_not(container: Path, run: RunFolder) -> None:
    for pid in range(1, MOST_FILES + 10):
        (container / f"{pid}-1.json").write_bytes(content(pid=pid, startTime=1))
    assert len(run.states()) == MOST_FILES


@pytest.mark.parametrize(
    "name",
    ["4711.json", "4711-123456.json.tmp", ".4711-123456.json", "٤-1.json", "9" * 30 + "-1.json"],
)
def test_other_names_are_left_alone(container: Path, run: RunFolder, name: str) -> None:
    (container / name).write_bytes(content())
    assert run.states() == []
    assert run.ignored == 0


BAD = {
    "empty": b"",
    "half": content()[:40],
    "not UTF-8": b"\xff\xfe",
    "a list": b"[]",
    "nested": b"[" * 10_000,
    "of another version": content(schemaVersion=2),
    "without a pid": content(pid=None),
    "with a text as pid": content(pid="4711"),
    "with a truth as pid": content(pid=True),
    "with a huge number": b'{"schemaVersion": 1, "pid": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_ignored_and_counted(container: Path, run: RunFolder, bad: bytes) -> None:
    (container / "4711-123456.json").write_bytes(bad)
    assert run.states() == []
    assert run.ignored == 1


def test_what_is_wrong_inside_is_dropped_and_the_rest_is_kept() -> None:
    state = parse(
        content(
            frameworks=["torch", {"name": 7}, {"name": "jax\ud800\n" + "x" * 500, "version": 1}],
            limitBytes=LARGEST + 1,
            processesPerGpu=-1,
            reclaimed={"id": "a-1", "result": "Done\n"},
            gpus=[{"uuid": "GPU-1", "bytes": 5}, {"uuid": "GPU 2", "bytes": 5}, {"uuid": "GPU-3"}],
        )
    )
    [framework] = state.shim.frameworks
    assert framework.name.startswith("jax??x")
    assert (len(framework.name), framework.version) == (253, None)
    assert state.shim.limit_bytes is None
    assert (state.shim.processes_per_gpu, state.reclaimed) == (None, None)
    assert state.measured == (("GPU-1", 5),)


def test_a_cap_that_is_no_amount_is_no_cap() -> None:
    caps = [
        {"gpu": "GPU-1", "capBytes": 5},
        {"gpu": "GPU-2", "capBytes": -5},
        {"gpu": "GPU 3", "capBytes": 5},
        {"gpu": "GPU-4", "capBytes": True},
        {"gpu": ["GPU-5"]},
    ]
    torch = {"name": "torch", "caps": caps, "notCapped": "no word", "capHits": "2", "reclaim": 1}
    [framework] = parse(content(frameworks=[torch])).shim.frameworks
    assert framework == Framework("torch", None, (Cap("GPU-1", 5),))


def test_a_share_of_another_kind_is_none() -> None:
    good = {"name": "vllm", "argument": "x" * 300, "asked": "9" * 40, "applied": "\ud800"}
    faulty = [good | {"applied": 0.5}, good | {"name": None}, {}, "vllm"]
    [server] = parse(content(servers=[*faulty[:2], good | {"reason": "no word"}])).shim.servers
    assert server == Server("vllm", None, "x" * 253, "9" * 32, "?")
    assert parse(content(servers=faulty)).shim.servers == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
FRAMEWORK = st.dictionaries(
    st.sampled_from(["name", "version", "caps", "notCapped", "capHits", "reclaim"]), JSON
)
FIELDS = st.dictionaries(
    st.sampled_from(["limitBytes", "contextReserveBytes", "gpus", "container", "reclaimed"]), JSON
)


@given(FIELDS, st.lists(FRAMEWORK, max_size=3))
def test_whatever_a_file_says_becomes_a_claim_that_the_format_takes(
    fields: Any, frameworks: Any
) -> None:
    try:
        state = parse(content(frameworks=frameworks, **fields))
    except ValueError:
        return
    process = Process(1, "GPU-1", bytes=1, shim=state.shim)
    message = encode(full(Header("Sidecar", "first", 1, 0), Picture(processes=(process,))))
    assert Report.model_validate_json(message).processes[0].shim is not None
    assert all(0 < amount < 2**63 for _, amount in state.measured)


TEXTS = st.text(max_size=300) | st.none() | st.integers()
SERVER = st.dictionaries(
    st.sampled_from(["name", "version", "argument", "asked", "applied", "reason"]),
    TEXTS,
    min_size=4,
)


@given(st.lists(SERVER, max_size=6))
def test_whatever_is_said_of_servers_is_taken_as_well(servers: Any) -> None:
    shim = parse(content(servers=servers)).shim
    picture = Picture(processes=(Process(1, "GPU-1", bytes=1, shim=shim),))
    message = encode(full(Header("Sidecar", "first", 1, 0), picture))
    assert Report.model_validate_json(message).processes[0].shim is not None
