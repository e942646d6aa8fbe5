"""Verifies Ed25519 signatures with the standard library alone: RFC 8032, section 5.1.7.

It is for readers without `cryptography`, and takes some milliseconds for each signature. It handles no secret, so its
timing reveals nothing.
"""

import hashlib

P = 2**255 - 19
"""Prime of the field that Ed25519 computes in (RFC 8032, section 5.1)."""
L = 2**252 + 27742317777372353535851937790883648493
"""Order of the base point (RFC 8032, section 5.1)."""
D = -121665 * pow(121666, P - 2, P) % P
"""Coefficient d of the curve -x^2 + y^2 = 1 + d x^2 y^2, modulo P (RFC 8032, section 5.1)."""
ROOT = pow(2, (P - 1) // 4, P)
"""Square root of -1 modulo P. It is needed to find a point's x from its y (RFC 8032, section 5.1.3)."""
Point = tuple[int, int, int, int]
"""Point in extended coordinates X, Y, Z, T, with x = X/Z, y = Y/Z and xy = T/Z."""


def verifies(public: bytes, signature: bytes, message: bytes) -> bool:
    """Return True if `signature` is the key `public`'s signature of `message`; False for malformed bytes."""
    point = _decoded(public)
    if point is None or len(signature) != 64:
        return False
    scalar = int.from_bytes(signature[32:], "little")
    if scalar >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    challenge = int.from_bytes(digest, "little") % L
    x, y, z, t = _times(challenge, point)
    found = _sum(_times(scalar, BASE), (P - x, y, z, P - t))
    return _encoded(found) == signature[:32]


def _decoded(encoded: bytes) -> Point | None:
    """Return the point that 32 bytes encode; None unless they are its one canonical encoding."""
    if len(encoded) != 32:
        return None
    number = int.from_bytes(encoded, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    x = _root_of(y) if y < P else None
    if x is None or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def _root_of(y: int) -> int | None:
    """Return an x such that (x, y) is on the curve; None if there is none."""
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    return None if (x * x - square) % P else x


def _encoded(point: Point) -> bytes:
    x, y, z, _ = point
    inverse = pow(z, P - 2, P)
    x, y = x * inverse % P, y * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _sum(first: Point, second: Point) -> Point:
    x1, y1, z1, t1 = first
    x2, y2, z2, t2 = second
    a, b = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(scalar: int, point: Point) -> Point:
    found: Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            found = _sum(found, point)
        point = _sum(point, point)
        scalar >>= 1
    return found


def _base() -> Point:
    y = 4 * pow(5, P - 2, P) % P
    x = _root_of(y)
    assert x is not None
    x = P - x if x & 1 else x
    return x, y, 1, x * y % P


BASE = _base()
"""Base point of the curve: every public key is a multiple of it."""
