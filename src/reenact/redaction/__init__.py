"""Redaction: removes secrets from every payload before it is written to disk."""

from reenact.formats.capture import PLACEHOLDER
from reenact.redaction.families import SHAPES, SecretRule, Shapes
from reenact.redaction.names import environment_secrets, is_secret_name
from reenact.redaction.prefilter import Profile
from reenact.redaction.redactor import PROFILES, Redactor, default_profile

__all__ = [
    "PLACEHOLDER",
    "PROFILES",
    "SHAPES",
    "Profile",
    "Redactor",
    "SecretRule",
    "Shapes",
    "default_profile",
    "environment_secrets",
    "is_secret_name",
]
