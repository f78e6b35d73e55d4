"""Ed25519 keys as files, and checking signatures."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final, NoReturn

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from reenact.errors import FormatError
from reenact.store.outfile import open_output, refuse_without_neighbour

_GENERATE: Final = "make one with: reenact keygen"


def private_pem(key: Ed25519PrivateKey) -> bytes:
    """The text of a private key: PKCS #8 in PEM, not encrypted."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(key: Ed25519PublicKey) -> bytes:
    """The text of a public key: SubjectPublicKeyInfo in PEM."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def key_id(key: Ed25519PublicKey) -> str:
    """The name of a key pair: the digest of its public key."""
    return f"sha256:{sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()}"


def read_private_key(text: bytes, *, file: str) -> Ed25519PrivateKey:
    """The key to sign with."""
    if b"PUBLIC KEY-----" in text:
        _refuse(file, "is a public key; signing takes the private one")
    try:
        key = load_pem_private_key(text, password=None)
    except TypeError:
        _refuse(file, "is encrypted; give a private key without a password")
    except (ValueError, UnsupportedAlgorithm):
        _refuse(file, f"is not a private key in PEM; {_GENERATE}")
    if not isinstance(key, Ed25519PrivateKey):
        _refuse(file, f"is a key of another kind ({_kind(key)}); seals take Ed25519, {_GENERATE}")
    return key


def read_public_key(text: bytes, *, file: str) -> Ed25519PublicKey:
    """The key to verify with."""
    if b"PRIVATE KEY-----" in text:
        _refuse(file, "is a private key, to be kept where it was made; verifying takes the public one")
    try:
        key = load_pem_public_key(text)
    except (ValueError, UnsupportedAlgorithm):
        _refuse(file, "is not a public key in PEM; ask the signer for the file that ends in .pub")
    if not isinstance(key, Ed25519PublicKey):
        _refuse(file, f"is a key of another kind ({_kind(key)}); seals are signed with Ed25519")
    return key


def is_signed_by(key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    """Whether *signature* over *message* was made with the private key of *key*."""
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _kind(key: object) -> str:
    return type(key).__name__.removesuffix("PrivateKey").removesuffix("PublicKey")


def _refuse(file: str, reason: str) -> NoReturn:
    raise FormatError(reason, file=file) from None


class KeygenReport(msgspec.Struct, frozen=True):
    """The pair of keys that `keygen` made."""

    private: str
    """The file of the private key, readable by its owner alone."""
    public: str
    """The file of the public key, for those who verify."""
    key: str
    """The id by which a seal names the key."""


def keygen(out: str | Path, *, replace: bool = False) -> KeygenReport:
    """Make a pair of keys to seal with: the private one in *out*, the public one beside it as ``OUT.pub``."""
    private = Path(out)
    public = private.parent / f"{private.name}.pub"
    refuse_without_neighbour(private, "the public key")
    key = Ed25519PrivateKey.generate()
    with open_output(private, replace=replace, private=True) as private_file:
        private_file.write(private_pem(key))
        with open_output(public, replace=replace) as public_file:
            public_file.write(public_pem(key.public_key()))
    return KeygenReport(str(private), str(public), key_id(key.public_key()))
