"""Why there is no number: what pynvml raises, as a reason of the report. Pure."""

from __future__ import annotations

from gpumem_sidecar.reading import Reason

REASONS: dict[str, Reason] = {
    "LibraryNotFound": "NoNVMLInSidecar",
    "DriverNotLoaded": "NoNVMLInSidecar",
    "GpuIsLost": "DeviceLost",
    "GpuNotFound": "DeviceLost",
    "ResetRequired": "DeviceLost",
    "NotSupported": "NotSupported",
    "FunctionNotFound": "NotSupported",
    "Timeout": "Timeout",
}
"""By the name of pynvml's class without `NVMLError_`; every other error is an NVMLError."""


def reason_of(error: Exception) -> Reason:
    """Why there is no number, for anything that pynvml raises."""
    # Where the package itself is not installed, the outcome is that of a missing library.
    if isinstance(error, ImportError):
        return "NoNVMLInSidecar"
    if type(error).__name__ == "NVMLLibraryMismatchError":  # which is no NVMLError
        return "NotSupported"
    return REASONS.get(name_of(error), "NVMLError")


def name_of(error: Exception) -> str:
    """The error's name as pynvml has it, for example `GpuIsLost`."""
    return type(error).__name__.removeprefix("NVMLError_")
