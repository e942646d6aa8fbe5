"""Signed notes against the published vectors: C2SP's own example, and those of golang.org/x/mod/sumdb/note."""

import base64

import pytest

from forge.errors import ProofRefused, UsageError
from forge.ledger.signatures.signing import SigningKey, log_name, parse_signing_key, signed_note, verifier_key
from forge.proof.note import opened, parse_checkpoint, parse_key, parse_note

EXAMPLE_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
EXAMPLE_NOTE = (
    "This is an example message.\n\n\u2014 example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1E"
    "RYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)
PETER_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETER_PRIVATE = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
PETER_LINE = (
    "\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8"
    "pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
ENOCH_KEY = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
ENOCH_LINE = (
    "\u2014 EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n"
)
TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"


def text_of(note: str, *keys: str) -> str:
    return opened(parse_note(note.encode()), [parse_key(key) for key in keys])


def test_the_published_notes_verify_under_their_published_keys() -> None:
    assert text_of(EXAMPLE_NOTE, EXAMPLE_KEY) == "This is an example message.\n"
    assert text_of(TEXT + "\n" + PETER_LINE, PETER_KEY) == TEXT
    assert text_of(TEXT + "\n" + PETER_LINE + ENOCH_LINE, PETER_KEY, ENOCH_KEY) == TEXT
    assert text_of(TEXT + "\n" + PETER_LINE + ENOCH_LINE, ENOCH_KEY) == TEXT


def test_signing_with_the_published_private_key_gives_the_published_note() -> None:
    key = parse_signing_key(PETER_PRIVATE)
    assert (key.verifier, key.private_text) == (PETER_KEY, PETER_PRIVATE)
    assert signed_note(TEXT, [key]) == TEXT + "\n" + PETER_LINE


def test_a_seed_of_zeros_is_the_published_key_of_enoch_root() -> None:
    key = SigningKey("EnochRoot", bytes(32))
    assert key.verifier == verifier_key("EnochRoot", key.public) == ENOCH_KEY
    assert signed_note(TEXT, [parse_signing_key(PETER_PRIVATE), key]) == TEXT + "\n" + PETER_LINE + ENOCH_LINE


def test_a_key_is_shown_without_its_secret() -> None:
    key = parse_signing_key(PETER_PRIVATE)
    assert "c74f20a3" in repr(key)
    assert base64.b64encode(key.seed).decode()[:6] not in repr(key)
    assert str(key.seed) not in repr(key)


@pytest.mark.parametrize("shift", [*range(len(PETER_KEY)), "start", "end"])
def test_a_mangled_verifier_key_is_refused(shift: int | str) -> None:
    if isinstance(shift, str):
        mangled = PETER_KEY[1:] if shift == "start" else PETER_KEY[:-1]
    else:
        mangled = PETER_KEY[:shift] + chr(ord(PETER_KEY[shift]) + 1) + PETER_KEY[shift + 1 :]
    with pytest.raises(UsageError, match="verifier key"):
        parse_key(mangled)


@pytest.mark.parametrize(
    "key",
    [
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "",
        "+c74f20a3+ARpc",
        "a b+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "\udcff+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        PETER_KEY + "\n" + ENOCH_KEY,
    ],
)
def test_what_is_no_ed25519_key_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        parse_key(key)


@pytest.mark.parametrize("place", range(len(PETER_PRIVATE)))
def test_a_mangled_private_key_is_refused_and_never_shown(place: int) -> None:
    mangled = PETER_PRIVATE[:place] + chr(ord(PETER_PRIVATE[place]) + 1) + PETER_PRIVATE[place + 1 :]
    with pytest.raises(UsageError) as refused:
        parse_signing_key(mangled)
    assert "AYEKFALVFGyN" not in refused.value.message


@pytest.mark.parametrize(
    "note",
    [
        TEXT.encode(),
        TEXT.encode() + b"\n",
        (TEXT + "\n" + PETER_LINE)[:-1].encode(),
        b"\x01" + (TEXT + "\n" + PETER_LINE).encode(),
        b"\xff" + (TEXT + "\n" + PETER_LINE).encode(),
        (TEXT + "\n" + PETER_LINE.replace("PeterNeumann", "Bad Name")).encode(),
        (TEXT + "\n" + PETER_LINE.replace("PeterNeumann", "Bad+Name")).encode(),
        (TEXT + "\n" + PETER_LINE + "Unexpected line.\n").encode(),
        (TEXT + "\n" + PETER_LINE * 101).encode(),
        (TEXT + "\n\u2014 PeterNeumann AAAA\n").encode(),
        b"",
    ],
)
def test_what_is_no_note_is_unusable(note: bytes) -> None:
    with pytest.raises(UsageError):
        parse_note(note)


def test_a_note_without_a_signature_of_ours_is_refused() -> None:
    with pytest.raises(ProofRefused, match=r"signed by PeterNeumann\+c74f20a3, not by .*EnochRoot"):
        text_of(TEXT + "\n" + PETER_LINE, ENOCH_KEY)
    with pytest.raises(ProofRefused, match="no key"):
        text_of(TEXT + "\n" + PETER_LINE)


def test_a_known_signature_that_does_not_fit_sinks_the_note_even_beside_one_that_does() -> None:
    enoch_of_another = signed_note("another\n", [SigningKey("EnochRoot", bytes(32))]).split("\n\n")[1]
    with pytest.raises(ProofRefused, match="doesn't fit"):
        text_of(TEXT + "\n" + PETER_LINE + enoch_of_another, PETER_KEY, ENOCH_KEY)
    assert text_of(TEXT + "\n" + PETER_LINE + enoch_of_another, PETER_KEY) == TEXT
    with pytest.raises(ProofRefused, match="doesn't fit"):
        text_of(TEXT.replace("answer", "Answer") + "\n" + PETER_LINE, PETER_KEY)
    longer = PETER_LINE[:60] + "ABCD" + PETER_LINE[60:]
    with pytest.raises(ProofRefused, match="doesn't fit"):
        text_of(TEXT + "\n" + longer, PETER_KEY)


def test_a_signature_under_our_name_with_another_id_is_ignored() -> None:
    other = SigningKey("PeterNeumann", bytes(range(32)))
    note = signed_note(TEXT, [other]) + PETER_LINE
    assert text_of(note, PETER_KEY) == TEXT
    with pytest.raises(ProofRefused):
        text_of(signed_note(TEXT, [other]), PETER_KEY)


def test_the_text_ends_at_the_last_empty_line() -> None:
    text = "one\n\ntwo\n"
    key = SigningKey("k", bytes(32))
    assert text_of(signed_note(text, [key]), key.verifier) == text


def test_the_published_checkpoint_has_its_lines() -> None:
    text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    found = parse_checkpoint(text)
    assert (found.origin, found.size) == ("example.com/behind-the-sofa", 20852163)
    assert base64.b64encode(found.root).decode() == "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="


@pytest.mark.parametrize(
    "text",
    [
        "a\n1\n",
        "a\n01\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "a\n-1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "a\n\u0661\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "a\n1\nCsUY\n",
        "a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\nmore\n",
    ],
)
def test_what_is_no_checkpoint_is_unusable(text: str) -> None:
    with pytest.raises(UsageError, match="checkpoint"):
        parse_checkpoint(text)


def test_a_logs_name_is_one_word_and_unique_by_the_ledgers_id() -> None:
    assert log_name("kernels of\tAda+Bob\u00a0x", "01-02") == "kernels-of-Ada-Bob-x/01-02"


def test_a_text_that_no_note_can_hold_is_not_signed() -> None:
    for text in ("no newline", "a\x00\n", "a\r\n"):
        with pytest.raises(ValueError, match="note"):
            signed_note(text, [SigningKey("k", bytes(32))])
