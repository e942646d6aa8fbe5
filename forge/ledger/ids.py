"""Makes event ids: UUIDv7 (RFC 9562, section 5.7), which sort by the time at which they were made."""

RANDOM_BYTES = 10
"""Number of random bytes that an id takes; 74 of their bits are used."""


def uuid7(now_ms: int, random_bytes: bytes) -> str:
    """Make a UUIDv7 from a Unix time in milliseconds and ten random bytes."""
    if not 0 <= now_ms < 1 << 48:
        raise ValueError(f"time {now_ms!r} ms doesn't fit a UUIDv7: expected 0 to 2^48 - 1")
    if len(random_bytes) != RANDOM_BYTES:
        raise ValueError(f"got {len(random_bytes)} random bytes: expected {RANDOM_BYTES}")
    random_bits = int.from_bytes(random_bytes, "big")
    high = (random_bits >> 62) & 0xFFF
    low = random_bits & ((1 << 62) - 1)
    digits = f"{now_ms << 80 | 7 << 76 | high << 64 | 2 << 62 | low:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
