"""What a sender does on order, with real processes and real files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpumem_sidecar import order_file
from gpumem_sidecar.answer import Order, parse
from gpumem_sidecar.hands import Hands
from gpumem_sidecar.processes import Facts, Unreadable, facts_of
from gpumem_sidecar.report import Acknowledgement
from gpumem_sidecar.settings import read
from patience import PATIENCE_SECONDS

GOLDEN = Path(__file__).parents[1] / "golden" / "shim-order.json"
POD = "5f0c8f3e-1111-4222-8333-444455556666"


@dataclass
class Program:
    """A process of a pod, and the folder that its shim and the sidecar share."""

    process: subprocess.Popen[bytes]
    run: Path
    start_time: int

    @property
    def place(self) -> str:
        return f"{self.process.pid}-{self.start_time}"

    def order(self, action: str = "Reclaim", **changes: Any) -> Order:
        made = Order("a-1", action, POD, "main", self.process.pid, self.start_time)
        return made._replace(**changes)

    def tell(self, reclaimed: dict[str, Any] | None = None) -> None:
        """As the shim writes it."""
        folder = self.run / "main"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        names = {"schemaVersion": 1, "pid": self.process.pid, "startTime": self.start_time}
        state: dict[str, Any] = {
            **names,
            "container": "main",
            "frameworks": [],
            "gpus": [],
            "reclaimed": reclaimed,
        }
        (folder / f"{self.place}.json").write_text(json.dumps(state))

    @property
    def file(self) -> Path:
        return self.run / "main" / f"{self.place}.order"

    @property
    def lives(self) -> bool:
        return self.process.poll() is None


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    facts = facts_of(process.pid)
    assert isinstance(facts, Facts)
    (tmp_path / "run").mkdir()
    yield Program(process, tmp_path / "run", facts.start_time)
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)


def sidecar(program: Program) -> Hands:
    return Hands(read([], {"GPUMEM_POD_UID": POD, "GPUMEM_RUN_PATH": str(program.run)}))


def agent(actions: str = "Reclaim,Kill") -> Hands:
    return Hands(read(["--agent"], {"GPUMEM_AGENT_ACTIONS": actions}))


def results(hands: Hands, *orders: Order) -> list[str]:
    return [done.result for done in hands.carry_out(orders)]


def test_the_order_is_the_golden_one() -> None:
    assert order_file.content("a-1") == GOLDEN.read_bytes()


def test_an_answer_says_which_process_is_meant() -> None:
    order = {"id": "a-1", "action": "Kill", "podUid": POD, "container": "main", "pid": 7}
    [parsed] = parse(json.dumps({"schemaVersion": 1, "orders": [order]}).encode()).orders
    assert parsed == Order("a-1", "Kill", POD, "main", 7, 0)


def test_an_order_is_put_beside_the_state_and_taken_back_when_it_was_answered(
    program: Program,
) -> None:
    program.tell()
    hands = sidecar(program)
    assert hands.carry_out([program.order()]) == []
    assert json.loads(program.file.read_text())["id"] == "a-1"
    assert program.file.stat().st_mode & 0o777 == 0o644
    assert hands.carry_out([program.order()]) == [], "it is under way"
    program.tell({"id": "a-1", "result": "Done", "bytes": 512})
    assert hands.carry_out([program.order()]) == [Acknowledgement("a-1", "Done", 512)]
    assert not program.file.exists()
    assert results(hands, program.order()) == ["Done"], "the first answer may have been lost"


def test_an_order_that_is_withdrawn_is_taken_back(program: Program) -> None:
    program.tell()
    hands = sidecar(program)
    hands.carry_out([program.order()])
    assert program.file.exists()
    assert hands.carry_out([]) == []
    assert not program.file.exists()


def test_the_answer_to_an_earlier_order_is_none_to_this_one(program: Program) -> None:
    program.tell({"id": "a-0", "result": "Done", "bytes": 512})
    assert sidecar(program).carry_out([program.order()]) == []
    assert program.file.exists()


def test_a_process_without_a_shim_can_give_nothing_back(program: Program) -> None:
    assert results(sidecar(program), program.order()) == ["Unsupported"]


@pytest.mark.parametrize("action", ["Reclaim", "Kill"])
def test_a_process_with_another_start_time_is_not_the_one(program: Program, action: str) -> None:
    program.tell()
    order = program.order(action, start_time=program.start_time - 1)
    assert results(sidecar(program), order._replace(action="Reclaim")) == ["NoSuchProcess"]
    assert results(agent(), order) == ["NoSuchProcess"]
    assert program.lives


@pytest.mark.parametrize("action", ["Reclaim", "Kill"])
def test_a_process_that_can_not_be_read_is_not_said_to_be_gone(
    program: Program, action: str
) -> None:
    settings = read(["--agent"], {"GPUMEM_AGENT_ACTIONS": "Reclaim,Kill"})
    hands = Hands(settings, look=lambda _: Unreadable("PermissionError"))
    assert results(hands, program.order(action)) == ["Failed"]
    assert program.lives


def test_an_order_that_nobody_foresaw_fails_and_holds_up_no_other(program: Program) -> None:
    def look(pid: int) -> Facts | Unreadable | None:
        if pid == 4_000_000:
            raise RuntimeError("nobody thought of this")
        return facts_of(pid)

    program.tell()
    hands = Hands(read([], {"GPUMEM_POD_UID": POD, "GPUMEM_RUN_PATH": str(program.run)}), look=look)
    odd = program.order(id="a-2", pid=4_000_000)
    assert hands.carry_out([odd, program.order()]) == [Acknowledgement("a-2", "Failed")]
    assert program.file.exists()


def test_a_process_of_another_pod_is_not_the_one(program: Program) -> None:
    program.tell()
    assert results(sidecar(program), program.order(pod_uid="another")) == ["NoSuchProcess"]
    assert results(agent(), program.order("Kill")) == ["NoSuchProcess"], "its group is no pod's"
    assert program.lives


def test_the_agent_ends_the_process_that_was_meant(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The process of a test is in no pod's group; which group is whose, other tests show.
    monkeypatch.setattr("gpumem_sidecar.hands.place_of", lambda _: program.order())
    assert results(agent(), program.order("Kill")) == ["Done"]
    assert program.process.wait(timeout=PATIENCE_SECONDS) == -signal.SIGKILL
    assert results(agent(), program.order("Kill")) == ["NoSuchProcess"]


@pytest.mark.parametrize("allowed", ["", "Reclaim"])
def test_an_agent_that_may_not_kill_does_not(program: Program, allowed: str) -> None:
    assert results(agent(allowed), program.order("Kill")) == ["Unsupported"]
    assert program.lives


def test_a_sidecar_never_kills(program: Program) -> None:
    assert results(sidecar(program), program.order("Kill")) == ["Unsupported"]
    assert program.lives


@pytest.mark.parametrize("pid", [-1, 0, 1])
def test_nobody_is_everybody_and_nobody_is_the_first_process(program: Program, pid: int) -> None:
    assert results(agent(), program.order("Kill", pid=pid)) == ["NoSuchProcess"]


def test_a_link_in_the_place_of_an_order_is_not_followed(program: Program, tmp_path: Path) -> None:
    program.tell()
    precious = tmp_path / "precious"
    precious.write_text("mine")
    program.file.symlink_to(precious)
    (program.file.parent / f".{program.file.name}").symlink_to(precious)
    assert sidecar(program).carry_out([program.order()]) == []
    assert precious.read_text() == "mine"
    assert not program.file.is_symlink()


def test_a_link_in_the_place_of_a_container_s_folder_is_not_followed(
    program: Program, tmp_path: Path
) -> None:
    program.tell()
    (program.run / "main").rename(tmp_path / "elsewhere")
    (program.run / "main").symlink_to(tmp_path / "elsewhere")
    assert results(sidecar(program), program.order()) == ["Unsupported"]
    assert not (tmp_path / "elsewhere" / program.file.name).exists()


def test_a_pipe_in_the_place_of_an_order_is_not_waited_for(program: Program) -> None:
    program.tell()
    os.mkfifo(program.file)
    assert sidecar(program).carry_out([program.order()]) == []
    assert json.loads(program.file.read_text())["id"] == "a-1"


def test_a_setting_that_is_no_action_is_refused() -> None:
    with pytest.raises(ValueError, match="'Restart'"):
        agent("Restart")
