"""Redaction: secrets leave every payload before it reaches the disk."""

from reenact.capture.redaction.environment import environment_secrets
from reenact.capture.redaction.logs import RedactingFilter
from reenact.capture.redaction.placeholder import PLACEHOLDER
from reenact.capture.redaction.profile import PROFILES, Profile, default_profile
from reenact.capture.redaction.redactor import Redactor
from reenact.capture.redaction.rules import Rule

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
