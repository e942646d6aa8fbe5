"""Signed notes of C2SP, and Ed25519 as RFC 8032 has it, section 5.1: in integers, to verify only."""

import base64
import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
HALF = pow(2, (P - 1) // 4, P)


def signed(note, wanted, name, public):
    """Whether a note has the wanted text and a signature of this key under it."""
    text, _, lines = note.rpartition("\n\n")
    key_id = hashlib.sha256(name.encode() + b"\n\x01" + public).digest()[:4]
    for line in lines.rstrip("\n").split("\n"):
        start, signer, value = line.split(" ")
        raw = base64.b64decode(value)
        if (start, signer, raw[:4]) == ("\u2014", name, key_id):
            return text + "\n" == wanted and verifies(public, raw[4:], wanted.encode())
    return False


def verifies(public, signature, message):
    key, point = decoded(public), decoded(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or point is None or scalar >= ORDER or len(signature) != 64:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    left, right = times(scalar, BASE), add(point, times(h, key))
    return all((left[i] * right[2] - right[i] * left[2]) % P == 0 for i in (0, 1))


def add(one, other):
    """Of points in extended coordinates X, Y, Z, T."""
    a = (one[1] - one[0]) * (other[1] - other[0]) % P
    b = (one[1] + one[0]) * (other[1] + other[0]) % P
    c = 2 * one[3] * other[3] * D % P
    d = 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(scalar, point):
    total = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point = add(point, point)
        scalar >>= 1
    return total


def decoded(encoded):
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * HALF % P
    if y >= P or (x * x - square) % P or (x == 0 and sign):
        return None
    x = x if x & 1 == sign else P - x
    return (x, y, 1, x * y % P)


BASE = decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
