"""The command line: one file per verb.

Exit codes: 0 done, 1 a check failed, 2 unusable input, usage or output, 70 a fault of dualcoll, 130 interrupted before there
was a result.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    try:
        code = _run()
        sys.stdout.flush()
    except OSError as error:
        code = _output_failed(error)
    os._exit(code) if code == _BROKEN_PIPE else sys.exit(code)


_INTERRUPTED = 130
_BROKEN_PIPE = 141  # what a shell reports of a program that SIGPIPE ended


def _run() -> int:
    try:
        from dualcoll.cli.app import app
        from dualcoll.errors import CheckFailed, InputError
    except KeyboardInterrupt:
        return _interrupted()
    try:
        result = app(standalone_mode=False)
        if result == _INTERRUPTED:
            return _interrupted()
        return result if isinstance(result, int) else 0
    except CheckFailed as failed:
        return _failed(str(failed), 1)
    except InputError as error:
        return _failed(f"error: {error}", 2)
    except MemoryError:
        return _failed("error: not enough memory for this fabric", 2)
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit:
        return _BROKEN_PIPE  # the only thing that typer still ends the program for
    except OSError:
        raise
    except Exception as error:
        if hasattr(error, "show") and hasattr(
            error, "exit_code"
        ):  # a usage error; its class depends on typer's version
            error.show()
            return 2
        if type(error).__name__ == "Abort":
            return _interrupted()
        if os.environ.get("DUALCOLL_TRACEBACK"):
            raise
        kind = type(error).__name__
        return _failed(f"internal error: {kind}: {error} (a fault of dualcoll; DUALCOLL_TRACEBACK=1 shows where)", 70)


def _failed(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _interrupted() -> int:
    return _failed("interrupted before there was a result", _INTERRUPTED)


def _output_failed(error: OSError) -> int:
    if error.errno == errno.EPIPE:
        return _BROKEN_PIPE
    with contextlib.suppress(OSError):
        print(f"error: the output cannot be written: {error.strerror}", file=sys.stderr)
    # what is still buffered cannot be written either, and must not be tried again at exit
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 2
