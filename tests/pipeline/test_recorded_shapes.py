"""Which shapes an event records when the gates asked more than it has room for."""

from forge.domain.digest import canonical
from forge.domain.evidence import WorkloadErrors
from forge.pipeline.recorded_shapes import SHAPES_BYTES, recorded_errors, recorded_shapes

AXES = ("group", "head_dim", "kv_heads", "kv_len", "tokens")


def shapes(count: int) -> list[dict[str, int]]:
    return [
        {axis: 1000 + (place * 7919 + number * 104729) % 90_000 for number, axis in enumerate(AXES)}
        for place in range(count)
    ]


def test_all_shapes_are_recorded_where_they_fit() -> None:
    asked = shapes(40)
    assert recorded_shapes(asked, asked[:1]) == tuple(asked)
    assert recorded_shapes([], []) == ()


def test_the_tasks_own_and_the_ends_of_each_axis_stay_where_there_is_no_room_for_all() -> None:
    asked = shapes(400)
    kept = recorded_shapes(asked, (asked[399], asked[200]))
    assert len(canonical(kept)) <= SHAPES_BYTES + 2
    assert 40 < len(kept) < 400
    assert asked[399] in kept
    assert asked[200] in kept
    for axis in AXES:
        sizes = [shape[axis] for shape in asked]
        recorded = [shape[axis] for shape in kept]
        assert (min(recorded), max(recorded)) == (min(sizes), max(sizes))
    assert list(kept) == [shape for shape in asked if shape in kept], "in the order in which they were asked"


def errors(count: int) -> list[WorkloadErrors]:
    return [
        WorkloadErrors(
            shape=shape, inputs=f"kind_{place}", max_relative_error=1e-7, bound_used=(place * 37 % 101) / 101
        )
        for place, shape in enumerate(shapes(count))
    ]


def test_all_errors_are_recorded_where_they_fit() -> None:
    found = errors(30)
    assert recorded_errors(found, 30 * 200) == tuple(found)


def test_the_errors_nearest_to_their_bounds_stay_where_there_is_no_room_for_all() -> None:
    found = errors(70)
    kept = recorded_errors(found, 4_000)
    assert sum(len(canonical(one)) + 1 for one in kept) <= 4_000
    assert 10 < len(kept) < 70
    left_out = [one for one in found if one not in kept]
    assert min(one.bound_used for one in kept) >= max(one.bound_used for one in left_out)
    assert list(kept) == [one for one in found if one in kept], "in the order in which they were found"
    assert recorded_errors(found, 0) == (max(found, key=lambda one: one.bound_used),)
