import math
import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from forge.errors import (
    ActorForbidden,
    ConcurrencyConflict,
    IdempotencyConflict,
    IntegrityError,
    LedgerCorrupt,
    StorageFailed,
    UnknownName,
    UsageError,
)
from forge.events.candidate import ClaimRecorded
from forge.events.ledger import LedgerOpened
from forge.events.run import RunAborted
from forge.ledger.audit.history import audit
from forge.ledger.batch import Batch
from forge.ledger.chain import genesis_hash
from forge.ledger.replay import replay
from forge.ledger.store import Ledger

from .making import LEDGER_ID, create, duplicated, examples, fill, new_id, now, open_ledger, stream_of

ADA = "cli:ada@lab"


def test_a_new_ledger_begins_with_ledger_opened(ledger: Ledger) -> None:
    (first,) = ledger.read()
    assert (first.seq, first.stream_version, first.actor) == (1, 1, "system:forge")
    assert isinstance(first.event, LedgerOpened)
    assert first.event.ledger_id == ledger.ledger_id == LEDGER_ID
    assert ledger.head.event_hash == first.event_hash
    assert next(ledger.rows()).prev_hash == genesis_hash(LEDGER_ID)


@pytest.mark.parametrize("name", sorted(examples()))
def test_every_event_type_is_read_back_as_it_was_appended(name: str, ledger: Ledger) -> None:
    event = examples()[name]
    appended = ledger.append([event], actor=ADA, correlation_id="run-1", causation_id="cause")
    (found,) = ledger.read(after_seq=1)
    assert found.event == event
    assert (found.seq, found.event_hash) == (appended.last_seq, appended.head_hash)
    assert (found.stream, found.stream_version) == (event.stream(), 1)
    assert (found.correlation_id, found.causation_id, found.actor) == ("run-1", "cause", ADA)


def test_a_batch_takes_consecutive_places_over_several_streams(ledger: Ledger, path: Path) -> None:
    appended = ledger.append(list(examples().values()), actor=ADA, correlation_id="run-1")
    assert (appended.first_seq, appended.last_seq) == (2, 1 + len(examples()))
    assert not appended.replayed
    assert [found.event for found in ledger.read(after_seq=1)] == list(examples().values())
    assert audit(path).ok


def test_history_survives_closing(path: Path) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 3)
        head = ledger.head
    assert not path.with_name(f"{path.name}-wal").exists()
    with open_ledger(path, read_only=True) as reader:
        assert reader.head == head
        assert len(list(reader.read())) == 4


def test_reading_can_be_narrowed_and_goes_page_by_page(ledger: Ledger) -> None:
    batch = [duplicated(number, candidate="ab"[number % 2]) for number in range(1203)]
    ledger.append(batch, actor=ADA, correlation_id="many")
    ledger.append([examples()["RunStarted"]], actor=ADA, correlation_id="other")
    assert [found.seq for found in ledger.read()] == list(range(1, 1206))
    assert [found.seq for found in ledger.read(after_seq=1200, limit=2)] == [1201, 1202]
    assert len(list(ledger.read(limit=700))) == 700
    assert list(ledger.read(limit=0)) == []
    assert {found.event.candidate for found in ledger.read(stream=stream_of("b"))} == {
        duplicated(0, candidate="b").candidate
    }
    assert [found.stream_version for found in ledger.read(stream=stream_of("b"))] == list(range(1, 602))
    assert [found.seq for found in ledger.read(types=["RunStarted", "LedgerOpened"])] == [1, 1205]
    assert [found.seq for found in ledger.read(correlation_id="other")] == [1205]
    assert [found.seq for found in ledger.read(stream="run:nowhere")] == []


def test_a_reading_ends_at_the_head_it_began_with(ledger: Ledger) -> None:
    fill(ledger, 2)
    reading = ledger.read()
    fill(ledger, 2)
    assert len(list(reading)) == 3


@pytest.mark.parametrize("types", [["KernelBlessed"], [], "RunStarted"])
def test_a_misspelt_or_empty_choice_of_types_is_refused(types: list[str], ledger: Ledger) -> None:
    with pytest.raises(UnknownName):
        ledger.read(types=types)


def test_a_stream_version_counts_the_streams_events(ledger: Ledger) -> None:
    assert ledger.stream_version(stream_of("a")) == 0
    ledger.append([duplicated(1), duplicated(2)], actor=ADA, correlation_id="c")
    assert ledger.stream_version(stream_of("a")) == 2


def test_an_expected_version_holds_or_nothing_is_written(ledger: Ledger) -> None:
    stream = stream_of("a")
    ledger.append([duplicated(1)], actor=ADA, correlation_id="c", expected={stream: 0})
    ledger.append([duplicated(2)], actor=ADA, correlation_id="c", expected={stream: 1, "kernel:x": 0})
    with pytest.raises(ConcurrencyConflict) as conflict:
        ledger.append([duplicated(3)], actor=ADA, correlation_id="c", expected={stream: 1})
    assert (conflict.value.stream, conflict.value.expected, conflict.value.actual) == (stream, 1, 2)
    assert ledger.head.seq == 3


def test_a_repeated_command_gives_its_first_place_and_writes_nothing(ledger: Ledger) -> None:
    events = [duplicated(1), duplicated(2)]
    stream = stream_of("a")
    first = ledger.append(events, actor=ADA, correlation_id="c", idempotency_key="dup:1", expected={stream: 0})
    fill(ledger, 2)
    again = ledger.append(events, actor=ADA, correlation_id="other", idempotency_key="dup:1", expected={stream: 0})
    assert again.replayed
    assert (again.first_seq, again.last_seq, again.head_hash) == (
        first.first_seq,
        first.last_seq,
        first.head_hash,
    )
    assert ledger.head.seq == 5


@pytest.mark.parametrize(
    "other",
    [
        [duplicated(1), duplicated(3)],
        [duplicated(1)],
        [duplicated(1), duplicated(2), duplicated(3)],
        [duplicated(2), duplicated(1)],
        [RunAborted(run_id="x", reason="y"), duplicated(2)],
    ],
    ids=["other content", "shorter", "longer", "other order", "other type"],
)
def test_a_command_key_with_other_content_is_refused(other: list[object], ledger: Ledger) -> None:
    ledger.append([duplicated(1), duplicated(2)], actor=ADA, correlation_id="c", idempotency_key="k")
    with pytest.raises(IdempotencyConflict, match="'k'"):
        ledger.append(other, actor=ADA, correlation_id="c", idempotency_key="k")
    assert ledger.head.seq == 3


def test_another_run_or_actor_neither_takes_a_key_over_nor_records_under_it(ledger: Ledger) -> None:
    """The gate's key, used before by an author for what it may hand in: the gate is refused, and nothing is lost."""
    squatted = ledger.append([examples()["ClaimRecorded"]], actor="agent:m", correlation_id="r", idempotency_key="k")
    for actor, run in ((ADA, "r"), ("agent:m", "another run"), ("agent:other", "r"), ("system:gate", "r")):
        with pytest.raises(IdempotencyConflict, match="'k'"):
            ledger.append([duplicated(1)], actor=actor, correlation_id=run, idempotency_key="k")
        again = ledger.append(
            [examples()["ClaimRecorded"]], actor=actor, correlation_id=run, idempotency_key="k", causation_id=None
        )
        assert (again.replayed, again.first_seq) == (True, squatted.first_seq)
    with pytest.raises(ActorForbidden):
        ledger.append([examples()["CandidateVerified"]], actor="agent:m", correlation_id="r", idempotency_key="k")
    *_, last = ledger.read()
    assert (last.seq, last.actor, last.correlation_id) == (squatted.first_seq, "agent:m", "r")


def test_keys_that_look_like_places_in_a_batch_stay_apart(ledger: Ledger) -> None:
    ledger.append([duplicated(1), duplicated(2)], actor=ADA, correlation_id="c", idempotency_key="k")
    assert not ledger.append([duplicated(3)], actor=ADA, correlation_id="c", idempotency_key="k#1").replayed


def test_many_commands_share_a_transaction_and_all_or_none_stand(ledger: Ledger, path: Path) -> None:
    def command(number: int, **more: object) -> Batch:
        return Batch(events=[duplicated(number)], actor=ADA, correlation_id="c", **more)

    written = ledger.append_many([command(1, idempotency_key="k1"), command(2), command(1, idempotency_key="k1")])
    assert [(one.first_seq, one.last_seq, one.replayed) for one in written] == [
        (2, 2, False),
        (3, 3, False),
        (2, 2, True),
    ]
    with pytest.raises(ConcurrencyConflict):
        ledger.append_many([command(3), command(4, expected={stream_of("a"): 2})])
    assert ledger.head.seq == 3
    assert ledger.append_many([]) == []
    assert audit(path).ok


def test_commands_that_stand_already_are_found_among_hundreds_of_new_ones(ledger: Ledger, path: Path) -> None:
    """Stored earlier, or earlier in the same call; their keys are asked for a hundred at a time."""

    def command(number: int) -> Batch:
        key = None if number % 7 == 0 else f"k:{number}"
        return Batch(
            events=[duplicated(number), duplicated(-number)], actor=ADA, correlation_id="c", idempotency_key=key
        )

    stored = {number: one for number in range(3, 250, 11) for one in ledger.append_many([command(number)])}
    before = ledger.head.seq
    numbers = [*range(1, 250), *range(1, 250, 5)]
    written = ledger.append_many([command(number) for number in numbers])
    seen = {number: (one.first_seq, one.last_seq, one.head_hash) for number, one in stored.items() if number % 7}
    seq = before
    for number, one in zip(numbers, written, strict=True):
        assert one.replayed == (number in seen)
        if one.replayed:
            assert (one.first_seq, one.last_seq, one.head_hash) == seen[number]
            continue
        assert (one.first_seq, one.last_seq) == (seq + 1, seq + 2)
        seq += 2
        if number % 7:
            seen[number] = (one.first_seq, one.last_seq, one.head_hash)
    assert ledger.head.seq == seq
    assert audit(path).ok


@pytest.mark.parametrize("commands", [1, 3])
def test_streams_are_numbered_on_however_many_are_written_together(commands: int, ledger: Ledger, path: Path) -> None:
    """Some stood before, some come twice; past a hundred they are asked for in several queries."""
    names = [f"c{number % 230}" for number in range(300)]
    ledger.append([duplicated(0, candidate=name) for name in names[:9]], actor=ADA, correlation_id="c")
    events = [duplicated(number, candidate=name) for number, name in enumerate(names)]
    parts = [events[start::commands] for start in range(commands)]
    ledger.append_many([Batch(events=part, actor=ADA, correlation_id="c") for part in parts])
    for name, count in Counter(names[:9] + names).items():
        assert ledger.stream_version(stream_of(name)) == count
        assert [one.stream_version for one in ledger.read(stream=stream_of(name))] == list(range(1, count + 1))
    assert audit(path).ok


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moment=st.datetimes(timezones=st.just(UTC) | st.just(timezone(timedelta(hours=-5)))), whole=st.booleans())
def test_the_time_is_recorded_in_utc_with_its_microseconds(moment: datetime, whole: bool, ledger: Ledger) -> None:
    moment = moment.replace(microsecond=0) if whole else moment
    assume(1 < moment.year < 9999)
    *_, before = ledger.read()
    with Ledger.open(ledger.path, now=lambda: moment, new_id=new_id) as writer:
        writer.append([duplicated(1)], actor=ADA, correlation_id="c")
    *_, last = ledger.read()
    said = f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    assert last.recorded_at == max(before.recorded_at, said)


@pytest.mark.parametrize("commands", [1, 3])
def test_a_clock_that_was_set_back_does_not_turn_history_around(commands: int, ledger: Ledger) -> None:
    times = iter([datetime(2031, 1, 1, tzinfo=UTC), *[datetime(2020, 1, 1, tzinfo=UTC)] * commands])
    with Ledger.open(ledger.path, now=lambda: next(times), new_id=new_id) as writer:
        writer.append([duplicated(1)], actor=ADA, correlation_id="c")
        writer.append_many([Batch(events=[duplicated(2)], actor=ADA, correlation_id="c")] * commands)
    assert {one.recorded_at for one in ledger.read(after_seq=1)} == {"2031-01-01T00:00:00.000000Z"}


def test_a_key_used_for_something_else_undoes_the_hundreds_around_it(ledger: Ledger) -> None:
    def command(number: int, key: int) -> Batch:
        return Batch(events=[duplicated(number)], actor=ADA, correlation_id="c", idempotency_key=f"k:{key}")

    ledger.append_many([command(150, 150)])
    for clash in (command(151, 150), command(1000, 3)):  # stored earlier, and in the same call
        with pytest.raises(IdempotencyConflict, match="k:"):
            ledger.append_many([*(command(number, number) for number in range(140)), clash])
        assert ledger.head.seq == 2


def test_a_payload_of_more_than_16_kib_is_refused_with_its_size_and_the_way_out(ledger: Ledger) -> None:
    fits = RunAborted(run_id="r", reason="x" * (16384 - len('{"reason":"","run_id":"r"}')))
    ledger.append([fits], actor=ADA, correlation_id="c")
    with pytest.raises(IntegrityError, match=r"RunAborted has a payload of 16385 bytes.*content-addressed"):
        ledger.append([fits.model_copy(update={"reason": fits.reason + "x"})], actor=ADA, correlation_id="c")
    with pytest.raises(IntegrityError, match="content-addressed"):
        ledger.append([RunAborted(run_id="r", reason="é" * 8200)], actor=ADA, correlation_id="c")
    assert ledger.head.seq == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_slipped_past_validation_is_refused(value: float, ledger: Ledger) -> None:
    claim = examples()["ClaimRecorded"]
    assessed = examples()["ClaimAssessed"]
    for event in (
        claim.model_copy(update={"value": value}),
        assessed.model_copy(update={"measured_value": value}),
    ):
        with pytest.raises(IntegrityError, match="read back"):
            ledger.append([event], actor=ADA, correlation_id="c")
    assert ledger.head.seq == 1


def test_an_event_class_that_is_not_registered_is_refused(ledger: Ledger) -> None:
    class MyClaim(ClaimRecorded):
        pass

    unregistered = MyClaim.model_validate(examples()["ClaimRecorded"].model_dump())
    with pytest.raises(IntegrityError, match="registered"):
        ledger.append([unregistered], actor=ADA, correlation_id="c")


def test_keys_of_a_payload_are_ascii(ledger: Ledger) -> None:
    profile = examples()["ProfileCaptured"].model_copy(update={"metrics": {"tempö": 1.0}})
    with pytest.raises(IntegrityError, match="ASCII"):
        ledger.append([profile], actor=ADA, correlation_id="c")


def test_no_one_opens_a_ledger_twice(ledger: Ledger) -> None:
    second = LedgerOpened(ledger_id="other", origin="o", forge_version="0.1.0")
    with pytest.raises(IntegrityError, match="start of a ledger"):
        ledger.append([second], actor="system:forge", correlation_id="c")
    with pytest.raises(ActorForbidden):
        ledger.append([second], actor=ADA, correlation_id="c")


def test_an_agent_cannot_write_a_gates_event(ledger: Ledger) -> None:
    for name in ("CandidateVerified", "BenchmarkRecorded", "KernelPromoted"):
        with pytest.raises(ActorForbidden, match=name):
            ledger.append([examples()["ClaimRecorded"], examples()[name]], actor="agent:model", correlation_id="c")
    assert ledger.head.seq == 1


@pytest.mark.parametrize(
    "fault",
    [
        {"correlation_id": ""},
        {"correlation_id": "a\nb"},
        {"correlation_id": "x" * 201},
        {"causation_id": ""},
        {"idempotency_key": ""},
        {"idempotency_key": "\ud800"},
    ],
)
def test_envelope_texts_are_short_and_printable(fault: dict[str, str], ledger: Ledger) -> None:
    with pytest.raises(IntegrityError, match=next(iter(fault))):
        ledger.append([duplicated(1)], actor=ADA, **({"correlation_id": "c"} | fault))


def test_nothing_is_not_an_append(ledger: Ledger) -> None:
    with pytest.raises(IntegrityError, match="nothing to append"):
        ledger.append([], actor=ADA, correlation_id="c")


def test_a_stream_needs_a_category_and_a_name(ledger: Ledger) -> None:
    decided = examples()["HumanDecided"]
    for stream in ("kernel", "kernel:", ":x", "Kernel:x", "kernel:a\x00b", "kernel:" + "x" * 300):
        with pytest.raises(IntegrityError, match="stream"):
            ledger.append([decided.model_copy(update={"subject_stream": stream})], actor=ADA, correlation_id="c")


@pytest.mark.parametrize(
    ("clock", "ids", "says"),
    [
        (lambda: datetime(2026, 3, 1), new_id, "zone"),
        (now, lambda: "not-a-uuid", "ck_event_event_id"),
        (now, lambda: "019554d0-9c00-7abc-8def-0123456789ab", "event_id was used before"),
    ],
    ids=["a time without a zone", "an id of another kind", "an id used twice"],
)
def test_a_bad_clock_or_id_writes_nothing(
    clock: Callable[[], datetime], ids: Callable[[], str], says: str, path: Path
) -> None:
    with Ledger.open(path, now=clock, new_id=ids) as ledger:
        with pytest.raises(IntegrityError, match=says):
            ledger.append([duplicated(1), duplicated(2)], actor=ADA, correlation_id="c")
        assert ledger.head.seq == 1
    assert audit(path).ok


def test_what_the_clock_raises_reaches_the_caller_and_rolls_back(path: Path) -> None:
    def broken() -> datetime:
        raise KeyboardInterrupt

    with Ledger.open(path, now=broken, new_id=new_id) as ledger, pytest.raises(KeyboardInterrupt):
        ledger.append([duplicated(1)], actor=ADA, correlation_id="c")
    with open_ledger(path) as ledger:
        fill(ledger, 1)
        assert ledger.head.seq == 2


def test_a_reader_cannot_write(path: Path) -> None:
    with open_ledger(path, read_only=True) as reader, pytest.raises(StorageFailed, match="reading only"):
        reader.append([duplicated(1)], actor=ADA, correlation_id="c")


def test_a_writer_stops_when_another_file_took_the_ledgers_place(ledger: Ledger, path: Path) -> None:
    os.rename(path, path.with_name("moved.db"))
    create(path.with_name("other.db")).close()
    os.rename(path.with_name("other.db"), path)
    with pytest.raises(LedgerCorrupt, match="another file"):
        ledger.append([duplicated(1)], actor=ADA, correlation_id="c")


def test_a_forked_child_cannot_use_its_parents_ledger(ledger: Ledger) -> None:
    child = os.fork()
    if child == 0:
        try:
            ledger.append([duplicated(1)], actor=ADA, correlation_id="c")
        except IntegrityError as error:
            os._exit(7 if "fork" in error.message else 1)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    fill(ledger, 1)


def test_a_ledger_is_created_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    create(tmp_path / "kernel_registry.db").close()
    assert sorted(os.listdir(tmp_path)) == ["kernel_registry.db", "kernel_registry.db.lock"]


@pytest.mark.parametrize("name", ["k.db", "k.db-wal", "k.db-journal"])
def test_a_ledger_is_never_created_over_something(name: str, tmp_path: Path) -> None:
    (tmp_path / name).symlink_to("nowhere")
    with pytest.raises(UsageError, match="exists"):
        create(tmp_path / "k.db")
    assert sorted(os.listdir(tmp_path)) == sorted([name, "k.db.lock"])


def test_what_a_killed_creation_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    aside = tmp_path / ".k.db.new"
    aside.mkdir()
    (aside / "k.db").write_bytes(b"half of a database")
    create(tmp_path / "k.db").close()
    assert not aside.exists()
    assert audit(tmp_path / "k.db").ok


def test_a_failed_creation_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="ck_ledger_meta_origin"):
        Ledger.create(
            tmp_path / "k.db",
            ledger_id=LEDGER_ID,
            origin="x" * 201,
            forge_version="0.1.0",
            now=now,
            new_id=new_id,
        )
    assert os.listdir(tmp_path) == ["k.db.lock"]
    with pytest.raises(UsageError, match="no folder"):
        create(tmp_path / "absent" / "k.db")


commands = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), min_size=1, max_size=3),
        st.sampled_from(["", "k1", "k2"]),
    ),
    max_size=8,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commands=commands)
def test_any_commands_leave_gapless_chained_streams_and_each_key_once(
    commands: list[tuple[list[tuple[int, str]], str]],
    finished: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("law") / "k.db"
    path.write_bytes(finished.read_bytes())
    stored: list[object] = []
    keys: dict[str, list[object]] = {}
    with open_ledger(path) as ledger:
        for content, key in commands:
            events = [duplicated(number, candidate=candidate) for number, candidate in content]
            try:
                appended = ledger.append(events, actor=ADA, correlation_id="c", idempotency_key=key or None)
            except IdempotencyConflict:
                assert keys[key] != events
                continue
            assert appended.replayed == (key in keys)
            if not appended.replayed:
                stored += events
            if key:
                assert keys.setdefault(key, events) == events
        found = list(ledger.read(after_seq=1))
        assert [one.event for one in found] == stored
        assert [one.seq for one in found] == list(range(2, len(stored) + 2))
        for candidate in "abc":
            versions = [one.stream_version for one in ledger.read(stream=stream_of(candidate))]
            assert versions == list(range(1, len(versions) + 1))
            assert ledger.stream_version(stream_of(candidate)) == len(versions)
    report = audit(path)
    assert (report.ok, report.events) == (True, len(stored) + 1)


def test_the_newest_of_a_type_and_streams_by_their_beginning_are_found(ledger: Ledger) -> None:
    assert ledger.newest("CandidateDuplicated") is None
    assert ledger.streams("candidate:") == []
    events = [duplicated(number, candidate=name) for number, name in enumerate("abab")]
    ledger.append(events, actor=ADA, correlation_id="c")
    found = ledger.newest("CandidateDuplicated")
    assert found is not None
    assert (found.seq, found.event) == (5, events[-1])
    assert ledger.streams("candidate:") == sorted(stream_of(name) for name in "ab")
    assert ledger.streams(stream_of("a")) == [stream_of("a")]
    assert ledger.streams(stream_of("a") + "0") == []
    with pytest.raises(UnknownName):
        ledger.newest("Misspelt")


@pytest.mark.parametrize(
    "damage",
    [
        "payload = CAST(payload AS BLOB)",
        "payload_sha256 = zeroblob(32)",
        "schema_version = 99",
        "schema_version = 'x'",
    ],
)
def test_a_fold_stops_at_a_damaged_row(damage: str, ledger: Ledger, path: Path) -> None:
    """A STRICT table takes no value of another type, but a damaged page may hold one; so this table isn't STRICT."""
    ledger.append([duplicated(1), duplicated(2)], actor=ADA, correlation_id="c")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("ATTACH ? AS stored", (str(path),))
        connection.execute("CREATE TABLE main.event AS SELECT * FROM stored.event")
        connection.execute(f"UPDATE main.event SET {damage} WHERE seq = 2")
        lines = replay(connection, path, after_seq=0, until_seq=3, types=("CandidateDuplicated",))
        assert next(lines).seq == 1
        with pytest.raises(LedgerCorrupt, match="event 2"):
            next(lines)
