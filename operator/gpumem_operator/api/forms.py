"""Forms of text in the chart's values: the same pattern for Helm, before anything is installed, and
for the processes, which say in a sentence what would be right.

A pattern takes nothing that the process would refuse later, and may take less: of the ways to write
a quantity those that people use.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN: Final = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
LABEL_NAME: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_HOST: Final = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?)(:[1-9][0-9]{0,4})?"
_FRACTION: Final = r"(\.[0-9]{1,3})?"
_WHOLE_FRACTION: Final = r"(\.(25|5|75))?"
"""Of every unit from k and Ki on, these are whole bytes."""

_CERTIFICATES: Final = r"-----BEGIN CERTIFICATE-----[\s\S]+-----END CERTIFICATE-----"


@dataclass(frozen=True)
class Form:
    """Text that a regular expression (`^...$`, of RE2 and Python) fits."""

    pattern: str
    sentence: str
    """What people are told who wrote something else."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return handler(core) | {"pattern": self.pattern}

    def _checked(self, text: str) -> str:
        if re.fullmatch(self.pattern, text) is None:
            raise ValueError(f"{text[:64]!r} is {self.sentence}")
        return text


RESOURCE: Final = Form(
    rf"^{_SUBDOMAIN}/{LABEL_NAME}$", "not an extended resource: write for example nvidia.com/gpu"
)
NAMESPACE: Final = Form(
    f"^{DNS_LABEL}$", "not the name of a namespace: write for example kube-system"
)
NAME: Final = Form(
    f"^{_SUBDOMAIN}$",
    "not the name of an object: small letters, digits, '-' and '.', for example gpu.nvidia.com",
)
OPTIONAL_NAME: Final = Form(f"^({_SUBDOMAIN})?$", NAME.sentence)
LABEL: Final = Form(f"^({LABEL_NAME})?$", "not the value of a label")
IMAGE: Final = Form(
    r"^[A-Za-z0-9][-A-Za-z0-9._:/@+]*$",
    "not an image: write for example registry.example/gpu-memory-sidecar:1.0",
)
ADDRESS: Final = Form(
    rf"^(https://{_HOST}([/?][^\s#]*)?)?$", "not an address of the form https://HOST:PORT/PATH"
)
WEBHOOK: Final = Form(rf"^(https://{_HOST}/?)?$", "not an address of the form https://HOST:PORT")
CERTIFICATES: Final = Form(
    rf"^([\s\S]*{_CERTIFICATES}[\s\S]*)?$",
    "not a certificate in PEM: it begins with -----BEGIN CERTIFICATE-----",
)
CPU: Final = Form(
    rf"^([1-9][0-9]{{0,6}}m|0\.[0-9]{{0,2}}[1-9]|[1-9][0-9]{{0,3}}{_FRACTION})$",
    "not a quantity of processors above 0: write for example 50m",
)
CONTAINER_MEMORY: Final = Form(
    rf"^(([1-9][0-9]{{1,5}}{_FRACTION})Mi?"
    rf"|(0\.[1-9][0-9]{{0,2}}|[1-9][0-9]{{0,4}}{_FRACTION})[GT]i?"
    r"|[1-9][0-9]{4,8}(k|Ki)|[1-9][0-9]{7,14})$",
    "not a quantity of memory of at least 10M: write for example 96Mi",
)
"""No container starts with less, and a limit of 0 would be none."""
LEAST_VOLUME_BYTES: Final = 10**6
"""The shim alone takes an eighth of it."""
VOLUME_SIZE: Final = Form(
    rf"^([1-9][0-9]{{0,5}}{_WHOLE_FRACTION}[MGT]i?|0\.(25|5|75)[GT]i?"
    r"|[1-9][0-9]{3,8}(k|Ki)|[1-9][0-9]{6,14})$",
    "not a size of at least 1M: write for example 16Mi",
)
QUANTITY: Final = Form(
    rf"^[0-9]{{1,15}}{_FRACTION}(m|[KMGTPE]i|[kMGTPE]|[eE][0-9]|[eE]1[0-8])?$",
    "not a quantity: write for example 500m or 96Mi",
)
