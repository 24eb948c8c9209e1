"""What a policy may say about PyTorch's allocator: the table of `pytorch_allocator.py` as rules.

A key or value that the pods' PyTorch does not know raises at the first CUDA call of every program,
so it is refused when the policy is written. All rules are about `frameworks.pytorch`: most need the
map of keys, and some minVersion as well.
"""

from typing import Any, Final

from gpumem_operator.api.pytorch_allocator import (
    FRACTION_KEY,
    KEYS,
    NEVER_VALID,
    PATTERNS,
    expected,
    format_version,
    parse_version,
    problem_of_value,
)
from gpumem_operator.api.rules import Rule, Shown, matching, quoted

VERSION_PATTERN: Final = r"^[0-9]{1,3}\.[0-9]{1,3}$"
VERSION_IS_READABLE: Final = matching(
    VERSION_PATTERN, "'{self}' is not a version of PyTorch: write major.minor, for example 2.1"
)

_CONFIG: Final = "self.allocatorConfig"
_NAMED: Final = (*KEYS, FRACTION_KEY, *NEVER_VALID)
_VERSION_AS_NUMBER: Final = (
    "int(self.minVersion.split('.')[0]) * 1000 + int(self.minVersion.split('.')[1])"
)
_SPLIT: Final = "max_split_size_mb"
_LARGE: Final = "large_segment_size_mb"


def _has(key: str) -> str:
    return f"{quoted(key)} in {_CONFIG}"


def _value(key: str) -> str:
    return f"{_CONFIG}[{quoted(key)}]"


def _shown_value(key: str) -> Shown:
    return Shown(cel=_value(key), of=lambda pytorch: str(pytorch.allocator_config[key]))


def _refused(key: str, sentence: str) -> Rule:
    return Rule(
        cel=f"!({_has(key)})",
        holds=lambda pytorch: key not in pytorch.allocator_config,
        sentence=sentence,
        at=".allocatorConfig",
    )


def _unknown_keys(pytorch: Any) -> list[str]:
    return [key for key in pytorch.allocator_config if key not in _NAMED]


def _known_key() -> Rule:
    fits = f"k in [{', '.join(quoted(key) for key in _NAMED)}]"
    return Rule(
        cel=f"{_CONFIG}.all(k, {fits})",
        holds=lambda pytorch: not _unknown_keys(pytorch),
        sentence=f"{{key}} is not a key of PyTorch; these are: {', '.join(KEYS)}",
        # Anything but an index on the result of filter() is beyond the server's cost limit.
        shown={
            "key": Shown(
                cel=f"{_CONFIG}.filter(k, !({fits}))[0]",
                of=lambda pytorch: _unknown_keys(pytorch)[0],
            )
        },
        at=".allocatorConfig",
    )


def _fitting_value(key: str) -> Rule:
    spec = KEYS[key]
    fits = f"{_value(key)}.matches({quoted(PATTERNS[spec.kind])})"
    if spec.kind == "mb":
        fits += f" && int({_value(key)}) >= {spec.least}"
    return Rule(
        cel=f"!({_has(key)}) || ({fits})",
        holds=lambda pytorch: (
            key not in pytorch.allocator_config
            or problem_of_value(key, pytorch.allocator_config[key]) is None
        ),
        sentence=f"{key}: '{{value}}' is refused by PyTorch: it takes {expected(key)}",
        shown={"value": _shown_value(key)},
        at=".allocatorConfig",
    )


def _old_enough_key(key: str) -> Rule:
    since = KEYS[key].since
    return Rule(
        cel=(
            f"!({_has(key)}) || !self.minVersion.matches({quoted(VERSION_PATTERN)})"
            f" || {_VERSION_AS_NUMBER} >= {since[0] * 1000 + since[1]}"
        ),
        holds=lambda pytorch: (
            key not in pytorch.allocator_config or parse_version(pytorch.min_version) >= since
        ),
        sentence=(
            f"{key} exists since PyTorch {format_version(since)}, and minVersion is {{minVersion}}"
            " (2.0 unless set): raise it if no pod has an older PyTorch"
        ),
        at=".allocatorConfig",
    )


def _split_size_covers_segment(pytorch: Any) -> bool:
    config = pytorch.allocator_config
    sizes = [config.get(_SPLIT, ""), config.get(_LARGE, "")]
    return not all(size.isdecimal() for size in sizes) or int(sizes[0]) >= int(sizes[1])


def _split_size() -> Rule:
    numbers = " && ".join(
        f"{_has(key)} && {_value(key)}.matches('^[0-9]{{1,9}}$')" for key in (_SPLIT, _LARGE)
    )
    return Rule(
        cel=f"!({numbers}) || int({_value(_SPLIT)}) >= int({_value(_LARGE)})",
        holds=_split_size_covers_segment,
        sentence=f"{_SPLIT} {{split}} must not be smaller than {_LARGE} {{large}}",
        shown={"split": _shown_value(_SPLIT), "large": _shown_value(_LARGE)},
        at=".allocatorConfig",
    )


ALLOCATOR_RULES: Final[tuple[Rule, ...]] = (
    _known_key(),
    *(_refused(key, f"{key} is in no PyTorch release: leave it out") for key in NEVER_VALID),
    _refused(FRACTION_KEY, f"{FRACTION_KEY} can not be set here: the limit decides it"),
    *(_fitting_value(key) for key in KEYS),
    *(_old_enough_key(key) for key in KEYS),
    _split_size(),
)
