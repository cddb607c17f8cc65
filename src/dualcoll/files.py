"""Reading and writing whole files: bounded reads, writes that never leave half a file behind."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import BinaryIO

from dualcoll.errors import InputError

__all__ = ["MAX_BYTES", "atomic_write", "read_bytes", "read_stream"]

MAX_BYTES = 64 * 2**20  # more than any fabric that can be planned needs


def read_bytes(path: str | Path, limit: int = MAX_BYTES) -> bytes:
    """The file's content.

    Raises:
        InputError: it is a folder, cannot be read, is empty, or is larger than the limit.
    """
    if os.path.isdir(path):
        raise InputError("it is a folder, not a file", where=str(path))
    try:
        with open(path, "rb") as stream:
            return read_stream(stream, str(path), limit)
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}", where=str(path)) from None


def read_stream(stream: BinaryIO, where: str, limit: int = MAX_BYTES) -> bytes:
    """The rest of an open stream.

    Raises:
        InputError: there is nothing, or more than the limit.
    """
    data = stream.read(limit + 1)
    if not data.strip():
        raise InputError("it is empty", where=where)
    if len(data) > limit:
        raise InputError(f"it is larger than {limit // 2**20} MiB", where=where)
    return data


def atomic_write(path: str | Path, content: str | bytes) -> None:
    """Write a file whole or not at all: a temporary file in the same folder takes the target's name at the end.

    A link is followed; a device such as ``/dev/stdout`` is written to as it is.

    Raises:
        InputError: the folder is missing, the target is a folder, or writing is not permitted.
    """
    target = Path(os.path.realpath(path))
    data = content.encode() if isinstance(content, str) else content
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)
            return
        draft = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}")
        try:
            with open(draft, "xb") as stream:
                stream.write(data)
            os.replace(draft, target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        hint = "" if target.parent.is_dir() else f"make the folder {target.parent} first"
        raise InputError(f"it cannot be written: {error.strerror}", where=str(path), hint=hint) from None
