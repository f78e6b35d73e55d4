"""Redaction: secrets leave every payload before it reaches the disk."""

from reenact.redaction.environment import environment_secrets
from reenact.redaction.logs import RedactingFilter
from reenact.redaction.placeholder import PLACEHOLDER, without_marks
from reenact.redaction.profile import PROFILES, Profile, default_profile
from reenact.redaction.redactor import Redactor
from reenact.redaction.rules import Rule

__all__ = [
    "PLACEHOLDER",
    "PROFILES",
    "Profile",
    "RedactingFilter",
    "Redactor",
    "Rule",
    "default_profile",
    "environment_secrets",
    "without_marks",
]
