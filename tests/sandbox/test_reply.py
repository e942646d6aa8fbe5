"""Any bytes from a guest become a typed value or a refusal, never another exception."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.guest import wire
from forge.sandbox.reply import ArtifactFile, Refused, Returned, parse_artifact, parse_reply

int64 = st.integers(-(2**63), 2**63 - 1)
forms = st.lists(int64, max_size=wire.MAX_DIMENSIONS).flatmap(
    lambda sizes: st.builds(
        wire.OutputForm,
        st.sampled_from(wire.ELEMENT_TYPES),
        st.just(tuple(sizes)),
        st.lists(int64, min_size=len(sizes), max_size=len(sizes)).map(tuple),
    )
)
records = st.builds(
    wire.Record,
    call_id=st.integers(0, 2**64 - 1),
    status=st.integers(0, wire.WRONG_ELEMENT_TYPE),
    completed=st.integers(0, 2**32 - 1),
    outputs=st.lists(forms, max_size=wire.MAX_OUTPUTS).map(tuple),
    device_ns=st.integers(0, 2**64 - 1),
    addresses=st.lists(st.integers(0, 2**64 - 1), max_size=wire.MOST_ADDRESSES).map(tuple),
)
names = st.from_regex(r"[a-z_]{1,20}\.(so|cubin)", fullmatch=True)


def parse(untrusted: bytes, *, call_id: int = 7, calls: int | None = 1) -> Returned | Refused:
    return parse_reply(untrusted, call_id=call_id, elapsed_ns=5, calls=calls)


@given(records)
def test_a_record_survives_the_round_trip(record: wire.Record) -> None:
    packed = wire.pack_record(record)
    assert len(packed) == wire.RECORD_BYTES
    assert wire.unpack_record(packed) == record


@given(st.binary(max_size=2 * wire.RECORD_BYTES) | st.binary(min_size=wire.RECORD_BYTES, max_size=wire.RECORD_BYTES))
def test_any_bytes_are_refused_as_tampering(untrusted: bytes) -> None:
    answer = parse(untrusted)
    assert isinstance(answer, Refused)
    assert answer.reason.code == "TAMPERING"


@given(records, st.data())
def test_a_record_with_one_byte_changed_is_that_record_or_refused(record: wire.Record, data: st.DataObject) -> None:
    packed = bytearray(wire.pack_record(record))
    packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        unpacked = wire.unpack_record(bytes(packed))
    except ValueError:
        assert isinstance(parse(bytes(packed)), Refused)
    else:
        assert wire.pack_record(unpacked) == packed


@given(records)
def test_only_a_done_record_for_this_call_returns(record: wire.Record) -> None:
    for call_id in {7, record.call_id}:
        answer = parse(wire.pack_record(record), call_id=call_id, calls=3)
        right = record.status == wire.DONE and record.call_id == call_id and record.completed == 3
        assert isinstance(answer, Returned) == right


@given(st.integers(0, wire.WRONG_ELEMENT_TYPE))
def test_every_status_has_a_meaning(status: int) -> None:
    answer = parse(wire.pack_record(wire.Record(7, status, 1, ())))
    assert isinstance(answer, Returned if status == wire.DONE else Refused)


def test_a_wrong_shape_and_a_wrong_element_type_have_codes_of_their_own() -> None:
    form = wire.OutputForm("float64", (2, 3), (3, 1))
    codes = {
        status: parse(wire.pack_record(wire.Record(7, status, 0, (form,)))).reason.code  # type: ignore[union-attr]
        for status in (wire.WRONG_FORM, wire.WRONG_ELEMENT_TYPE)
    }
    assert codes == {wire.WRONG_FORM: "INCORRECT_SHAPE", wire.WRONG_ELEMENT_TYPE: "INCORRECT_DTYPE"}


def packed_files(files: list[ArtifactFile]) -> bytes:
    parts = [wire.ARTIFACT_COUNT.pack(len(files))]
    for file in files:
        parts += [wire.ARTIFACT_ENTRY.pack(file.name.encode(), len(file.content)), file.content]
    return b"".join(parts)


artifacts = st.lists(st.builds(ArtifactFile, names, st.binary(max_size=40)), max_size=4, unique_by=lambda f: f.name)


@given(artifacts)
def test_an_artifact_survives_the_round_trip(files: list[ArtifactFile]) -> None:
    assert parse_artifact(packed_files(files)) == tuple(files)


@given(
    st.binary(max_size=300)
    | artifacts.map(packed_files).flatmap(lambda good: st.binary(max_size=8).map(lambda end: good + end))
)
def test_any_bytes_are_an_artifact_or_a_value_error(untrusted: bytes) -> None:
    try:
        files = parse_artifact(untrusted)
    except ValueError:
        return
    assert packed_files(list(files)) == untrusted


@pytest.mark.parametrize(
    "name", ["../evil.so", "/etc/evil.so", "kernel.py", ".hidden.so", "", "a/b.so", "évil.so", "evil.so\0x", "."]
)
def test_a_built_file_has_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match=r"plain name|can't decode|don't add up"):
        parse_artifact(packed_files([ArtifactFile(name, b"x")]))


def test_lengths_that_dont_add_up_are_refused() -> None:
    good = packed_files([ArtifactFile("a.so", b"12345")])
    twice = wire.ARTIFACT_COUNT.pack(2) + good[4:] * 2
    huge = wire.ARTIFACT_COUNT.pack(1) + wire.ARTIFACT_ENTRY.pack(b"a.so", 2**63)
    many = wire.ARTIFACT_COUNT.pack(2**32 - 1) + good[4:]
    for untrusted in (b"", good[:-1], good + b"x", twice, huge, many):
        with pytest.raises(ValueError, match=r"built files|nothing"):
            parse_artifact(untrusted)
