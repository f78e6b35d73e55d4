"""The hashes of a log, and the previews they never cover."""

import io
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.formats.hashes import output_hash, params_hash, plan_hash, trajectory_hash
from reenact.trace.to_replay_log import output_preview, stream_preview

from .replay_log_strategies import patient

GOLDEN = Path(__file__).parents[1] / "golden" / "replay_log"


def hash_of_log(data: bytes) -> str:
    return trajectory_hash(io.BytesIO(data), file="log")


def test_params_hash_covers_the_canonical_parameters():
    """The order of keys does not matter; the published vector holds."""
    assert params_hash({"path": "src/auth.rs"}) == (
        "sha256:2432e75fcdc5b53e0c60fc6d1514682a9eb0c5b5fd4faefba9f8d6fcfef7d5fd"
    )
    assert params_hash({"a": 1, "b": 2}) == plan_hash({"b": 2, "a": 1})


OUTPUTS = {
    "success": ((True, "hello", None), "5ffedee05d6fc46aa060d310e13f0b17cbc2da6afa0712d2428b4e45ee0e7395"),
    "failure": ((False, "", "boom"), "e0d4fdb0fb04bffae56bb7a433e5fff2f9a4a0e80c569359eee4742b96324541"),
}


@pytest.mark.parametrize(("output", "hexadecimal"), OUTPUTS.values(), ids=OUTPUTS)
def test_output_hash_covers_success_content_and_error(output, hexadecimal):
    """The published vectors of a good and a failed output hold."""
    success, content, error = output
    assert output_hash(success=success, content=content, error=error) == f"sha256:{hexadecimal}"


def test_trajectory_hash_is_that_of_the_file():
    """For a log as we write it, sha256sum agrees."""
    data = (GOLDEN / "current.jsonl").read_bytes()
    assert hash_of_log(data) == f"sha256:{sha256(data).hexdigest()}"


def test_trajectory_hash_forgets_how_lines_end_but_nothing_else():
    """Byte order mark, CR LF, blank lines and the last line end do not count; every other byte does."""
    data = (GOLDEN / "legacy.jsonl").read_bytes()
    tolerated = b"\xef\xbb\xbf" + data.rstrip().replace(b"\n", b"\r\n\r\n")
    assert hash_of_log(tolerated) == hash_of_log(data)
    assert hash_of_log(data.replace(b"hello", b"hullo").replace(b"tc_001", b"tc_002")) != hash_of_log(data)
    assert hash_of_log(data.replace(b'{"', b'{ "', 1)) != hash_of_log(data)


PREVIEWS = [(output_preview, 2_000), (stream_preview, 10_000)]


@pytest.mark.parametrize(("preview", "limit"), PREVIEWS)
def test_a_text_at_the_limit_is_kept(preview, limit):
    """Up to the limit nothing is cut, whatever the characters weigh in bytes."""
    assert preview("é" * limit) == "é" * limit


@pytest.mark.parametrize(("preview", "limit"), PREVIEWS)
@patient
@given(text=st.text("aé☕", min_size=1, max_size=5))
def test_a_longer_text_keeps_both_ends(preview, limit, text):
    """Beyond the limit the two halves stand around three dots."""
    long = text * limit + "z"
    half = limit // 2
    assert preview(long) == long[:half] + "..." + long[-half:]
