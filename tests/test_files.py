"""Whole-file reading and writing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dualcoll.errors import InputError
from dualcoll.files import atomic_write, read_bytes


def test_writing_replaces_the_whole_file(tmp_path: Path) -> None:
    """The new text stands in place of the old, links are followed, and nothing else is left in the folder."""
    target = tmp_path / "plan.json"
    target.write_text("old and longer")
    link = tmp_path / "link.json"
    link.symlink_to(target)
    atomic_write(link, "néw")
    assert target.read_bytes() == "néw".encode()
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "plan.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the last step fails, the old content stays and the temporary file goes."""
    target = tmp_path / "plan.json"
    target.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError) as caught:
        atomic_write(target, "new")
    assert str(caught.value) == f"{target}: it cannot be written: No space left on device"
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_unusable_targets(tmp_path: Path) -> None:
    """A missing folder and a folder as target are refused."""
    with pytest.raises(InputError) as caught:
        atomic_write(tmp_path / "no" / "plan.json", "x")
    assert str(caught.value) == (
        f"{tmp_path}/no/plan.json: it cannot be written: No such file or directory; make the folder {tmp_path}/no first"
    )
    with pytest.raises(InputError) as caught:
        atomic_write(tmp_path, "x")
    assert str(caught.value) == f"{tmp_path}: it cannot be written: Is a directory"


def test_devices_are_written_to() -> None:
    """A device is not replaced by a file."""
    atomic_write("/dev/null", "x")
    assert not Path("/dev/null").is_file()


def test_reading_is_bounded(tmp_path: Path) -> None:
    """Empty, too large, missing files and folders are refused."""
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    assert read_bytes(path) == b"abc"
    path.write_bytes(b"x" * (2**20 + 1))
    for content, message in (
        (b"x" * (2**20 + 1), "it is larger than 1 MiB"),
        (b" \n", "it is empty"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            read_bytes(path, 2**20)
        assert str(caught.value) == f"{path}: {message}"
    with pytest.raises(InputError) as caught:
        read_bytes(tmp_path / "none")
    assert str(caught.value) == f"{tmp_path}/none: it cannot be read: No such file or directory"
    with pytest.raises(InputError) as caught:
        read_bytes(tmp_path)
    assert str(caught.value) == f"{tmp_path}: it is a folder, not a file"
