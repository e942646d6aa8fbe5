"""Moves a signing key to another machine: encrypted under a passphrase, with the newest checkpoint it signed.

The file holds the verifier key, the encrypted private key, and the note of the newest checkpoint. The encryption also
protects the other two against changes. The receiver signs only if its ledger extends that note.
"""

import base64
import binascii
import os
from collections.abc import Callable

from forge.errors import CheckpointRefused, ProofRefused, UsageError
from forge.ledger.signatures.checkpoints import newest_checkpoint, require_extension, signing_state
from forge.ledger.signatures.keyring import Keyring, SignedHead
from forge.ledger.signatures.signing import SEED_BYTES, SigningKey
from forge.ledger.store import Ledger
from forge.proof.note import VerifierKey, opened, parse_checkpoint, parse_key, parse_note

HEADER = "forge.signing-key.v1"
"""First line of the file."""
SCRYPT_N = 1 << 17
"""Cost of scrypt: with r = 8, each guess at the passphrase takes 128 MiB and some tenths of a second."""
SCRYPT_R = 8
"""Block size of scrypt (RFC 7914, section 2)."""
SALT_BYTES = 16
"""Length of the salt in bytes. With 128 random bits two files have an equal salt by chance once in 2^64 files
or so."""
NONCE_BYTES = 12
"""Length of the nonce in bytes, as AES-GCM takes it."""
TAG_BYTES = 16
"""Length of the authentication tag in bytes."""
PASSPHRASE_MINIMUM = 12
"""Least number of characters of a passphrase. A shorter one can be guessed by a person who has the file."""
_EXPECTED = "expected a file as `forge ledger key export` writes it"
"""Words for what an exported key's file is, for messages."""


def hand_over(
    ledger: Ledger, keyring: Keyring, passphrase: str, *, write: Callable[[bytes], None], keep: bool
) -> SigningKey:
    """Pass the encrypted key in force to `write`; unless `keep`, it is out of use here when this returns.

    Raises UsageError without a key or with a short passphrase.
    """
    _require_long(passphrase)
    with keyring.held():
        public = signing_state(ledger).public
        if public is None:
            raise UsageError("this ledger has no key", hint="forge ledger checkpoint --new-key")
        key, last = keyring.load(public), keyring.last
        content = sealed(key, last.note if last else "", passphrase)
        unsealed(content, passphrase)  # the only copy of a key must be readable
        write(content)
        if not keep:
            keyring.set_over(public)
    return key


def take_over(ledger: Ledger, keyring: Keyring, untrusted: bytes, passphrase: str) -> SignedHead | None:
    """Take over a key from another machine, and what it signed last; return that head.

    Raises UsageError if it can't be read or isn't the key in force. Raises CheckpointRefused unless the ledger
    extends everything that the file, this folder and the ledger itself say was signed. Nothing is written in these
    cases.
    """
    named, _, _ = _parts(untrusted)
    state = signing_state(ledger)
    if state.verifier != str(named):
        raise UsageError(
            f"this file holds the key {named}; the key in force is {state.verifier or 'none'}: import that one from "
            "its holder",
            hint="forge ledger key show",
        )
    key, note = unsealed(untrusted, passphrase)
    with keyring.held():
        recorded = newest_checkpoint(ledger)
        heads = [_head(text, named) for text in (note, recorded.note if recorded else "")]
        known = [one for one in (*heads, keyring.last) if one is not None]
        with ledger.tree() as tree:
            for one in known:
                require_extension(tree, one)
        newest = max(known, key=lambda one: one.size, default=None)
        if newest is not None:
            keyring.remember(newest.note)  # before the key: after a crash no key lacks what it signed last
        keyring.make(key.seed)
    return newest


def sealed(key: SigningKey, note: str, passphrase: str) -> bytes:
    """Return the content of the file."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    salt, nonce = os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES)
    protected = f"{HEADER}\n{key.verifier}\n{note}".encode()
    secret = salt + nonce + AESGCM(_derived_key(passphrase, salt)).encrypt(nonce, key.seed, protected)
    return f"{HEADER}\n{key.verifier}\n{base64.b64encode(secret).decode()}\n{note}".encode()


def unsealed(untrusted: bytes, passphrase: str) -> tuple[SigningKey, str]:
    """Return the key and the note in a file; raise UsageError for a wrong passphrase or an altered file."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    named, secret, note = _parts(untrusted)
    salt, nonce, hidden = secret[:SALT_BYTES], secret[SALT_BYTES:][:NONCE_BYTES], secret[SALT_BYTES + NONCE_BYTES :]
    protected = f"{HEADER}\n{named}\n{note}".encode()
    try:
        seed = AESGCM(_derived_key(passphrase, salt)).decrypt(nonce, hidden, protected)
    except InvalidTag as error:
        raise UsageError(
            f"the key {named.key_id.hex()} can't be decrypted: another passphrase, or the file was altered; "
            "give the passphrase that it was exported with, or export it again"
        ) from error
    key = SigningKey(named.name, seed)
    if key.public != named.public:
        raise UsageError(f"the file holds another private key than the one to {named}: export that one again")
    return key, note


def _parts(untrusted: bytes) -> tuple[VerifierKey, bytes, str]:
    try:
        header, named, secret, note = untrusted.decode().split("\n", 3)
        raw = base64.b64decode(secret, validate=True)
    except (ValueError, binascii.Error) as error:
        raise UsageError(f"the key's file holds no signing key: {_EXPECTED}") from error
    if header != HEADER or len(raw) != SALT_BYTES + NONCE_BYTES + SEED_BYTES + TAG_BYTES:
        raise UsageError(f"the key's file holds no signing key, it begins with {header[:40]!r}: {_EXPECTED}")
    return parse_key(named), raw, note


def _head(note: str, key: VerifierKey) -> SignedHead | None:
    """Return what a note by this key says was signed; None for a note that another key signed."""
    if not note:
        return None
    try:
        checkpoint = parse_checkpoint(opened(parse_note(note.encode()), [key]))
    except ProofRefused:
        return None
    if checkpoint.origin != key.name:
        raise CheckpointRefused(f"the newest note in the file is of {checkpoint.origin!r}: export the key again")
    return SignedHead(checkpoint.size, checkpoint.root, note)


def _derived_key(passphrase: str, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt=salt, length=32, n=SCRYPT_N, r=SCRYPT_R, p=1).derive(passphrase.encode())


def _require_long(passphrase: str) -> None:
    if len(passphrase) < PASSPHRASE_MINIMUM:
        raise UsageError(
            f"this passphrase has {len(passphrase)} characters: expected at least {PASSPHRASE_MINIMUM}; "
            "choose another"
        )
