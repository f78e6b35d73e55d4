"""Keys of the wrong kind are refused with the reason."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from reenact.check.seals.keys import (
    is_signed_by,
    key_id,
    private_pem,
    public_pem,
    read_private_key,
    read_public_key,
)
from reenact.errors import FormatError

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def private(key, encryption=None):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


def public(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())

BAD_PRIVATE = {
    "a public key": (public(KEY), "is a public key; signing takes the private one"),
    "an encrypted key": (private(KEY, BestAvailableEncryption(b"x")), "is encrypted; give a private key"),
    "an RSA key": (private(RSA), "is a key of another kind (RSA); seals take Ed25519"),
    "a key for agreement": (private(X25519PrivateKey.generate()), "is a key of another kind (X25519)"),
    "no key": (b"hello", "is not a private key in PEM; make one with: reenact keygen"),
    "nothing": (b"", "is not a private key in PEM"),
    "half a key": (private(KEY)[:60], "is not a private key in PEM"),
}
BAD_PUBLIC = {
    "a private key": (private(KEY), "is a private key, to be kept where it was made"),
    "an RSA key": (public(RSA), "is a key of another kind (RSA)"),
    "a key on a curve": (public(EC), "is a key of another kind (EC)"),
    "no key": (bytes(range(256)), "is not a public key in PEM; ask the signer"),
    "nothing": (b"", "is not a public key in PEM"),
}


@pytest.mark.parametrize("name", BAD_PRIVATE)
def test_signing_takes_an_ed25519_private_key(name):
    """Anything else is refused in one line that names the file."""
    text, reason = BAD_PRIVATE[name]
    with pytest.raises(FormatError) as caught:
        read_private_key(text, file="k.pem")
    assert str(caught.value).startswith(f"k.pem: {reason}")


@pytest.mark.parametrize("name", BAD_PUBLIC)
def test_verifying_takes_an_ed25519_public_key(name):
    """Anything else is refused in one line that names the file."""
    text, reason = BAD_PUBLIC[name]
    with pytest.raises(FormatError) as caught:
        read_public_key(text, file="k.pub")
    assert str(caught.value).startswith(f"k.pub: {reason}")


def test_keys_survive_their_files():
    """What is signed with the one is verified with the other."""
    key = read_private_key(private_pem(KEY), file="k")
    other_half = read_public_key(public_pem(KEY.public_key()), file="k.pub")
    assert is_signed_by(other_half, key.sign(b"message"), b"message")
    assert not is_signed_by(other_half, key.sign(b"message"), b"another")
    assert key_id(other_half) == key_id(KEY.public_key())
