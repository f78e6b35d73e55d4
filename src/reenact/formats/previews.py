"""Previews: long texts shortened for display. No hash ever covers one."""

from __future__ import annotations


def output_preview(text: str) -> str:
    """A tool's output, at most its first and its last 1000 characters."""
    return _shorten(text, 2_000)


def stream_preview(text: str) -> str:
    """What a command wrote to stdout or stderr, at most its first and its last 5000 characters."""
    return _shorten(text, 10_000)


def _shorten(text: str, limit: int) -> str:
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}...{text[-half:]}"
