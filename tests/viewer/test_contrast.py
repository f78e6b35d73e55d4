"""Colours that everybody can read: the ratios that WCAG 2 asks for, computed from the style sheet."""

import re

import pytest

from reenact.viewer.static import static_files

CSS = static_files()["colours.css"].decode()
THEMES = ("light", "dark")
KINDS = ("model", "tool", "state", "outside", "chance")
ANYWHERE = ("text", "muted", "accent", "good", "bad", "warn", *KINDS)
PAIRS = [(name, ground) for name in ANYWHERE for ground in ("ground", "surface")]
PAIRS += [(name, "accent-ground") for name in ("text", "muted", "accent", *KINDS)]
PAIRS += [(name, f"{name}-ground") for name in ("good", "bad", "warn")]
PAIRS += [("text", "raised"), ("muted", "raised"), ("tool", "raised"), ("good", "raised")]


def colours(theme):
    pairs = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", CSS)
    return {name: pair[THEMES.index(theme)] for name, *pair in pairs}


def luminance(colour):
    def linear(value):
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("name", "ground"), PAIRS)
def test_text_stands_out(theme, name, ground):
    """At least 4.5 to 1."""
    found = colours(theme)
    dark, light = sorted([luminance(found[name]), luminance(found[ground])])
    assert (light + 0.05) / (dark + 0.05) >= 4.5
