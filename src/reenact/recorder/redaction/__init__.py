"""Redaction: secrets leave every payload before it reaches the disk."""

from reenact.recorder.redaction.environment import environment_secrets
from reenact.recorder.redaction.logs import RedactingFilter
from reenact.recorder.redaction.placeholder import PLACEHOLDER
from reenact.recorder.redaction.profile import PROFILES, Profile, default_profile
from reenact.recorder.redaction.redactor import Redactor
from reenact.recorder.redaction.rules import Rule

__all__ = [
    "PLACEHOLDER",
    "PROFILES",
    "Profile",
    "RedactingFilter",
    "Redactor",
    "Rule",
    "default_profile",
    "environment_secrets",
]
