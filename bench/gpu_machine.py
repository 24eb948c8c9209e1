"""A machine with one GPU, real or simulated, and who holds its memory."""

import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BASE_MIB = 64
"""What a holder takes at once."""
NEW_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


class Holder:
    """A process with GPU memory; `prefix` is a command to run it under."""

    def __init__(
        self, program: str, environment: Mapping[str, str], prefix: Sequence[str] = ()
    ) -> None:
        self._process = subprocess.Popen(
            [*prefix, program, "--gpu", "0", "--mib", str(BASE_MIB)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.inner_pid = int(self._line().split()[-1])
        line = _line_of_children(self._process.pid)
        self.pid = line[-1]
        self.outer_pid = line[1] if prefix else line[0]
        """The first process of the outermost namespace that `prefix` made."""

    def set(self, mib: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"set {mib}\n")
        self._process.stdin.flush()
        self._line()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the holder ended with {self._process.wait()}")
        return line


class Machine:
    """The GPU, real or simulated."""

    def __init__(
        self, program: str, environment: Mapping[str, str], folder: Path, *, simulated: bool
    ) -> None:
        self._token = folder / "token"
        self._token.write_text("token")
        self._program = program
        self._environment = environment
        self.simulated = simulated

    @contextmanager
    def holding(self, *prefix: str) -> Iterator[Holder]:
        holder = Holder(self._program, self._environment, prefix)
        try:
            yield holder
        finally:
            holder.kill()

    @contextmanager
    def measuring(self) -> Iterator[subprocess.Popen[bytes]]:
        """The product's own program, as an agent, at its usual interval."""
        variables = self._variables() | {
            "GPUMEM_REPORT_URL": "https://127.0.0.1:1/v1/reports",
            "GPUMEM_REPORT_CA": _any_authority(),
            "GPUMEM_REPORT_TOKEN_FILE": str(self._token),
            "GPUMEM_HEALTH_PORT": "9433",
        }
        command = [sys.executable, "-m", "gpumem_sidecar", "--agent"]
        with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL) as process:
            try:
                yield process
            finally:
                process.terminate()

    def _variables(self) -> dict[str, str]:
        paths = [str(ROOT / "sidecar"), self._environment.get("PYTHONPATH", "")]
        return {
            **self._environment,
            "PYTHONPATH": ":".join(filter(None, paths)),
            "GPUMEM_POD_UID": "5f0c8f3e-1111-4222-8333-444455556666",
            "GPUMEM_PID_NAMESPACE": "Pod",
        }

    def report(self, *prefix: str, agent: bool = False) -> Any:
        """One sample of the product's own program."""
        done = subprocess.run(
            [*prefix, sys.executable, "-m", "gpumem_sidecar", "--once"]
            + (["--agent"] if agent else []),
            env=self._variables(),
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        return json.loads(done.stdout)

    def nvidia_smi(self) -> dict[int, int]:
        """MiB by PID."""
        query = ["nvidia-smi", "--query-compute-apps=pid,used_memory"]
        done = subprocess.run(
            [*query, "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True
        )
        rows = [line.split(",") for line in done.stdout.splitlines() if line]
        return {int(pid): int(mib) for pid, mib in rows}


def _line_of_children(pid: int) -> list[int]:
    """A process, its first child and so on, as PIDs of this namespace."""
    line = [pid]
    while children := Path(f"/proc/{line[-1]}/task/{line[-1]}/children").read_text().split():
        line.append(int(children[0]))
    return line


def _any_authority() -> str:
    """One, as a pod has it: all of a machine's take 1.5 MiB. Empty where the machine has none."""
    bundle = ssl.get_default_verify_paths().cafile
    text = Path(bundle).read_text() if bundle else ""
    _, begin, rest = text.partition("-----BEGIN CERTIFICATE-----")
    body, end, _ = rest.partition("-----END CERTIFICATE-----")
    return begin + body + end


def _compiled(folder: Path) -> str:
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is None:
        raise SystemExit("a C compiler is needed: found none of cc, gcc and clang on PATH")
    program = folder / "real_gpu_hold"
    source = Path(__file__).with_name("real_gpu_hold.c")
    subprocess.run([compiler, "-O2", "-o", str(program), str(source), "-ldl"], check=True)
    return str(program)


def machine_in(folder: Path, *, simulated: bool) -> Machine:
    """The machine; `folder` is for what is made for it."""
    if not simulated:
        return Machine(_compiled(folder), os.environ, folder, simulated=False)
    from devcluster.simulated_driver import (
        Driver,
        build,
        create_state,
        environment,
        numbered_device,
    )

    state = create_state(folder / "driver", Driver((numbered_device(0),)))
    return Machine(str(build().program), environment(state), folder, simulated=True)
