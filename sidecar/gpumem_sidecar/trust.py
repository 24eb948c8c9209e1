"""Whom the sender takes for the operator: a CA that stands in the settings, or in a file."""

from __future__ import annotations

import os
import ssl

LARGEST_FILE = 256 * 1024


class Trust:
    """A CA in a file may be another one later: the file is read for every connection."""

    def __init__(self, ca: str = "", file: str = "") -> None:
        """`ca` is PEM and comes before the file. With neither, the image's own authorities count.
        Raises ValueError for PEM that can not be used."""
        self._file = "" if ca else file
        self._content = ca
        self._context = None if self._file else _context(ca)

    def context(self) -> ssl.SSLContext:
        """For the next connection. Raises OSError where the file can not be used now."""
        if self._file and ((content := self._read()) != self._content or self._context is None):
            try:
                self._context = _context(content)
            except ValueError as error:
                raise OSError(f"{self._file}: {error}") from None
            self._content = content
        assert self._context is not None
        return self._context

    def _read(self) -> str:
        descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = os.read(descriptor, LARGEST_FILE).decode("latin-1")
        finally:
            os.close(descriptor)
        if not content.strip():
            raise OSError(f"{self._file} is empty")  # else the image's own authorities would count
        return content


def _context(ca: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if ca:
            context.load_verify_locations(cadata=ca)
        else:
            context.load_default_certs()
    except ssl.SSLError as error:
        raise ValueError(f"the CA can not be read: {error}") from error
    return context
