"""Protocol buffers' wire format, as far as one answer of the kubelet needs it. Pure.

Not with the library `protobuf`, which costs each node 5 MiB for three fields. Source of the format:
protobuf.dev, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_VARINT = 10


def submessages(message: bytes, field: int) -> Iterator[bytes]:
    """The values of a repeated field of messages or strings, in order; other fields are passed
    over. Raises ValueError where the bytes are no message."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        if kind == _BYTES:
            length, position = _varint(message, position)
            value = message[position : position + length]
            if len(value) < length:
                raise ValueError("a field is longer than its message")
            position += length
            if key >> 3 == field:
                yield value
        elif kind == _VARINT:
            _, position = _varint(message, position)
        elif kind in _WIDTHS:
            position += _WIDTHS[kind]
        else:
            raise ValueError(f"wire type {kind} is not known")
    if position > len(message):
        raise ValueError("the message ends within a field")


def text(message: bytes, field: int) -> str:
    """The value of a field of text: the last one, as the format demands; empty where it is not.

    Raises ValueError where the bytes are no message, or no text."""
    values = [b"", *submessages(message, field)]
    return values[-1].decode()


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """A number of up to 64 bits, and where the next byte is."""
    value = 0
    for index, byte in enumerate(message[position : position + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise ValueError("a number does not end")
