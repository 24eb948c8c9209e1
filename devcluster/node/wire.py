"""Protocol buffers' wire format, as far as the kubelet's small messages need it.

Apart from the product's own reader of the same format, so that each is tested against the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _BYTES = 0, 2


def field(number: int, value: bytes | str | bool) -> bytes:
    """One field of a message: a message, a text, or whether something is so."""
    if isinstance(value, bool):
        return _varint(number << 3 | _VARINT) + _varint(int(value))
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def fields(message: bytes, number: int) -> Iterator[bytes]:
    """Values of a repeated field, in a message that has texts and messages alone."""
    rest = memoryview(message)
    while rest:
        key, rest = _number(rest)
        length, rest = _number(rest)
        if key >> 3 == number:
            yield bytes(rest[:length])
        rest = rest[length:]


def _varint(value: int) -> bytes:
    low, high = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(high) if high else bytes([low])


def _number(message: memoryview) -> tuple[int, memoryview]:
    end = next(index for index, byte in enumerate(message) if byte < 0x80) + 1
    value = sum((byte & 0x7F) << (7 * index) for index, byte in enumerate(message[:end]))
    return value, message[end:]
