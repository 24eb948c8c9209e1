"""Which declarations admission wrote itself: a seal beside them that nobody else can make.

A frozen declaration is plain text in a pod, and whoever creates a pod where admission does not look
(a namespace that is ignored, a time before the installation) can write the same text. It would be
believed once a tenant comes. So admission signs what it writes, and what is not signed counts as
not there: such a pod is charged like one that declares nothing.

The seal covers the namespace, the container's name, the source and the limit. Copied into another
pod it says what admission has accepted for that container of that namespace before, and nothing
else: never less than its author could have declared.
"""

import hmac
from collections.abc import Callable, Mapping
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.pods import KINDS, env_value

KEY_BYTES: Final = 32
_FROZEN: Final = frozenset({names.LIMIT_SOURCE_ENV, names.LIMIT_BYTES_ENV, names.SEAL_ENV})


class Seal:
    """Makes and checks seals with one key, which stays for the life of the cluster."""

    def __init__(self, key: bytes) -> None:
        """Raises ValueError for a key that is shorter than 32 bytes."""
        if len(key) < KEY_BYTES:
            raise ValueError(f"the key has {len(key)} bytes, and {KEY_BYTES} are needed")
        self._key = key

    def of(self, namespace: str, container: str, *, source: str, limit_bytes: str | None) -> str:
        """The seal of one frozen declaration; `limit_bytes` as it is written, None without one."""
        # None of the parts can contain a line feed: names are DNS labels, and the rest is ours.
        text = "\n".join((namespace, container, source, limit_bytes or ""))
        return hmac.digest(self._key, text.encode(errors="replace"), "sha256").hex()

    def verified(self, pod: Mapping[str, Any]) -> Mapping[str, Any]:
        """The stored pod without declarations that admission did not write; itself if all hold."""
        namespace = (pod.get("metadata") or {}).get("namespace") or ""
        return _each(pod, lambda raw: self._verified(namespace, raw))

    def _verified(self, namespace: str, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        entries = raw.get("env") or ()
        carries = any(entry.get("name") in _FROZEN for entry in entries)
        if not carries or self._holds(namespace, raw):
            return raw
        return _without_declaration(raw)

    def _holds(self, namespace: str, raw: Mapping[str, Any]) -> bool:
        expected = self.of(
            namespace,
            raw.get("name") or "",
            source=env_value(raw, names.LIMIT_SOURCE_ENV) or "",
            limit_bytes=env_value(raw, names.LIMIT_BYTES_ENV),
        )
        found = env_value(raw, names.SEAL_ENV) or ""
        return hmac.compare_digest(expected.encode(), found.encode(errors="replace"))


def without_declarations(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pod as if admission had frozen nothing into it."""
    return _each(pod, _without_declaration)


def _each(
    pod: Mapping[str, Any], change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The pod with every container changed; the very same pod where none of them changes."""
    spec = pod.get("spec") or {}
    changed: dict[str, list[Mapping[str, Any]]] = {}
    for kind in KINDS:
        present = spec.get(kind) or ()
        containers = [change(raw) for raw in present]
        if any(new is not old for new, old in zip(containers, present, strict=True)):
            changed[kind] = containers
    return {**pod, "spec": {**spec, **changed}} if changed else pod


def _without_declaration(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    entries = raw.get("env") or ()
    kept = [entry for entry in entries if entry.get("name") not in _FROZEN]
    return raw if len(kept) == len(entries) else {**raw, "env": kept}
