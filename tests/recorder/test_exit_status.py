"""How a recorded command ended becomes part of its finished capture."""

import pytest

import reenact
from reenact.errors import StoreError
from reenact.recorder.recovery import note_exit_status
from reenact.store.reader import CaptureReader


@pytest.fixture
def path(tmp_path):
    with reenact.capture(tmp_path / "a"):
        pass
    return tmp_path / "a"


@pytest.mark.parametrize(("exit_status", "status", "error"), [(0, "ok", None), (3, "error", "exit status 3")])
def test_a_command_that_failed_is_no_longer_ok(path, exit_status, status, error):
    """The manifest is sealed anew and still reads."""
    note_exit_status(path, exit_status)
    manifest = CaptureReader(path).manifest
    assert (manifest.exitStatus, manifest.status, manifest.error or None) == (exit_status, status, error)


def test_what_went_wrong_inside_is_not_overwritten(tmp_path):
    """The exception says more than the number."""
    with pytest.raises(ValueError, match="no lamp"), reenact.capture(tmp_path / "a"):
        raise ValueError("no lamp")
    assert note_exit_status(tmp_path / "a", 1).error == "ValueError: no lamp"


def test_an_unfinished_capture_has_no_manifest_to_change(tmp_path):
    """It is left as it is."""
    with reenact.capture(tmp_path / "a"), pytest.raises((StoreError, reenact.FormatError)):
        note_exit_status(tmp_path / "a", 0)
