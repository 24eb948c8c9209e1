"""What a process is told at its start: flags, and the chart's values in a file."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from gpumem_operator.api.records import describe_validation_error
from gpumem_operator.api.values import Values

_NEAR: Final = 0.8
"""Likeness of two names from which on one passes for a misspelt other."""
_NOT_YAML: Final = (yaml.YAMLError, ValueError, LookupError, TypeError, RecursionError)
"""Behind YAMLError stands what PyYAML answers to a tag that does not fit its text: `!!int x`."""


class SettingsError(Exception):
    """A flag or the settings file is wrong; the text is for whoever starts the process."""


@dataclass(frozen=True)
class Flags:
    """The command line. A role ignores the flags that it has no use for."""

    role: str
    namespace: str
    """Namespace of the release: where its Secrets and its Lease are."""
    kubeconfig: Path | None
    """None: the ServiceAccount of the pod that the process runs in."""
    bind: str
    port: int
    """Port of the role's own TLS server; 0 lets the system choose."""
    health_port: int
    cert_secret: str | None
    """Secret with tls.crt and tls.key of the TLS server, read through the API."""
    cert_dir: Path | None
    """Folder with tls.crt and tls.key, instead of a Secret."""
    seal_secret: str | None
    """Secret with the key that declarations are sealed with."""
    ca_secret: str | None
    webhook_configurations: tuple[str, ...]
    webhook_hosts: tuple[str, ...]
    """DNS names and addresses that the webhook's certificate is made for."""
    lease: str | None
    """Lease of the controller's leader."""
    nodes_config_map: str = ""
    """ConfigMap in which the controller tells admission about nodes."""
    agent_account: str = ""
    """ServiceAccount of node agents, in the release's namespace."""
    reader_account: str = ""
    """ServiceAccount whose tokens may ask the leader what it knows."""
    pod: str = ""
    """Name of the pod that the process runs in; empty outside of one."""


def load_values(path: Path, *, whole_chart: bool = False) -> Values:
    """The values in a YAML file; an empty file means the defaults.

    `whole_chart`: the file has all values of the chart, and those that Python does not read are
    passed over, unless they look like a misspelt one that it reads.

    Raises SettingsError that names the file, each wrong field and its value.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} can not be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        # PyYAML's words for a second document: "but found another document".
        fault = "not one YAML document" if "another" in str(error.problem) else "not YAML"
        raise SettingsError(f"{path} is {fault}: line {line}: {error.problem}") from None
    except _NOT_YAML as error:
        raise SettingsError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if raw is None:
        return Values()
    if not isinstance(raw, dict):
        raise SettingsError(f"{path} holds a {type(raw).__name__}, and a map of values is expected")
    if whole_chart:
        raw = _read_by_python(raw, path)
    try:
        return Values.model_validate(raw)
    except ValidationError as error:
        raise SettingsError(f"{path}: {_faults_with_values(error)}") from None


def _read_by_python(raw: dict[Any, Any], path: Path) -> dict[Any, Any]:
    known = {field.alias or name for name, field in Values.model_fields.items()}
    for key in raw.keys() - known:
        if near := get_close_matches(str(key), known, n=1, cutoff=_NEAR):
            raise SettingsError(f"{path}: {key}: unknown value: did you mean {near[0]}?")
    return {key: value for key, value in raw.items() if key in known}


def _faults_with_values(error: ValidationError) -> str:
    described = describe_validation_error(error, at="").split("; ")
    given = [fault["input"] for fault in error.errors(include_url=False, include_context=False)]
    return "; ".join(
        f"{text.removeprefix('.')} (given: {value!r:.80})"
        for text, value in zip(described, given, strict=False)
    )
