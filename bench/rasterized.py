"""An SVG as a PNG that says which SVG it is of: so that a test sees when it is out of date.

Drawn by rsvg-convert (Debian's librsvg2-bin), which only whoever makes a new picture needs.
"""

import hashlib
import struct
import subprocess
import zlib

_WIDTH = 1254
_NOTE = b"svg-sha256"
_SIGNATURE_BYTES, _HEADER_BYTES = 8, 25


def png(svg: str) -> bytes:
    """Raises FileNotFoundError where rsvg-convert is missing, CalledProcessError where it fails."""
    command = ["rsvg-convert", "--format=png", f"--width={_WIDTH}"]
    drawn = subprocess.run(command, input=svg.encode(), capture_output=True, check=True).stdout
    place = _SIGNATURE_BYTES + _HEADER_BYTES
    return drawn[:place] + _chunk(b"tEXt", _NOTE + b"\0" + _digest(svg)) + drawn[place:]


def is_of(drawn: bytes, svg: str) -> bool:
    """Whether this is what `png` made of this very SVG."""
    return _chunk(b"tEXt", _NOTE + b"\0" + _digest(svg)) in drawn[:200]


def _digest(svg: str) -> bytes:
    return hashlib.sha256(svg.encode()).hexdigest().encode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
