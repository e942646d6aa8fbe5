"""The verifier that needs nothing but the standard library: RFC 8032's vectors, and forms that must not pass."""

import builtins
import random

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from forge.errors import ProofRefused
from forge.proof.ed25519 import L, P, verifies
from tests.proof.test_note import EXAMPLE_KEY, EXAMPLE_NOTE, text_of

VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595b"
        "be24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb430"
        "2aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716e"
        "d28dc027beceea1ec40a",
    ),
]


@pytest.mark.parametrize(("public", "message", "signature"), VECTORS)
def test_the_vectors_of_rfc_8032(public: str, message: str, signature: str) -> None:
    key, text, signed = map(bytes.fromhex, (public, message, signature))
    assert verifies(key, signed, text)
    assert not verifies(key, signed, text + b"x")
    scalar = int.from_bytes(signed[32:], "little")
    assert not verifies(key, signed[:32] + (scalar + L).to_bytes(32, "little"), text), "a second form of it"
    assert not verifies(key, signed[:63], text)
    assert not verifies(key[:31], signed, text)


def test_it_agrees_with_cryptography_on_signatures_and_on_each_flipped_bit() -> None:
    rng = random.Random(5)
    for length in (0, 1, 200):
        private = Ed25519PrivateKey.from_private_bytes(rng.randbytes(32))
        public, message = private.public_key().public_bytes_raw(), rng.randbytes(length)
        signature = private.sign(message)
        assert verifies(public, signature, message)
        for _ in range(12):
            at = rng.randrange(64 * 8)
            flipped = bytearray(signature)
            flipped[at // 8] ^= 1 << at % 8
            assert not verifies(public, bytes(flipped), message)


@pytest.mark.parametrize(
    "public", [P.to_bytes(32, "little"), (2**256 - 1).to_bytes(32, "little"), b"\x02" + bytes(31)]
)
def test_what_is_no_point_verifies_nothing(public: bytes) -> None:
    assert not verifies(public, bytes(64), b"")


def test_a_note_is_opened_without_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *rest: object, **more: object) -> object:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert text_of(EXAMPLE_NOTE, EXAMPLE_KEY) == "This is an example message.\n"
    with pytest.raises(ProofRefused, match="doesn't fit its text"):
        text_of(EXAMPLE_NOTE.replace("an example", "no example"), EXAMPLE_KEY)
