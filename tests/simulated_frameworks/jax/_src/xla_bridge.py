"""The backends that were started."""

_backends = {}
