import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.ledger.ids import uuid7

TIMES = st.integers(0, 2**48 - 1)
RANDOM = st.binary(min_size=10, max_size=10)


@given(now_ms=TIMES, random_bytes=RANDOM)
def test_an_id_is_a_uuid_of_version_7_that_holds_its_time(now_ms: int, random_bytes: bytes) -> None:
    parsed = uuid.UUID(uuid7(now_ms, random_bytes))
    assert parsed.variant == uuid.RFC_4122
    assert parsed.version == 7
    assert parsed.int >> 80 == now_ms


@given(earlier=TIMES, later=TIMES, one=RANDOM, other=RANDOM)
def test_ids_sort_by_time(earlier: int, later: int, one: bytes, other: bytes) -> None:
    if earlier < later:
        assert uuid7(earlier, one) < uuid7(later, other)


@given(now_ms=TIMES, one=RANDOM, other=RANDOM)
def test_74_random_bits_tell_ids_of_one_time_apart(now_ms: int, one: bytes, other: bytes) -> None:
    def bits(content: bytes) -> int:
        return int.from_bytes(content, "big") & (2**74 - 1)

    assert (uuid7(now_ms, one) == uuid7(now_ms, other)) == (bits(one) == bits(other))


def test_the_example_of_rfc_9562_comes_out() -> None:
    """Appendix A.6: time 0x017F22E279B0, rand_a 0xCC3, rand_b 0x18C4DC0C0C07398F."""
    random_bits = 0xCC3 << 62 | 0x18C4DC0C0C07398F
    assert uuid7(0x017F22E279B0, random_bits.to_bytes(10, "big")) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


@pytest.mark.parametrize(("now_ms", "length"), [(-1, 10), (2**48, 10), (0, 9), (0, 11)])
def test_a_time_or_randomness_that_does_not_fit_is_refused(now_ms: int, length: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        uuid7(now_ms, bytes(length))
