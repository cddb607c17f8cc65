"""Runs the command line in this process, errors and exit code included."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from dualcoll.cli import main


class Done(NamedTuple):
    """What a run left behind."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def go(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["dualcoll", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        captured = capsys.readouterr()
        return Done(code if isinstance(code, int) else 0 if code is None else 1, captured.out, captured.err)

    return go
