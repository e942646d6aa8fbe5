"""A registry that is published again and again never gives a torn answer, and what it gave out stays as it was."""

import multiprocessing
import os
import threading

import pytest

from forge.errors import ForgeError
from forge.lookup import Policy, Registry
from tests.lookup.asking import ASK, publish, publish_kernels, published, shown_kernel
from tests.projections.histories import promoted, revoke
from tests.projections.values import EDGES

BASE = shown_kernel()
SWAPS = 25


def publish_nth(directory, number: int) -> None:
    """A publication in which each kernel's fields name the publication, so that a mixture shows."""
    own = {"entry_point": f"publication_{number}", "promoted_seq": number, "verified_seq": number}
    publish_kernels(directory, [{**BASE, **own}, {**BASE, **own, "op": "softmax"}], seq=number)


def seen(registry: Registry, op: str = "rmsnorm") -> int:
    return registry.lookup(**{**ASK, "op": op}).evidence.promoted_seq


def ask_until(directory, stop, tell, *, anew: bool) -> None:
    """Ask all the time and once after the end, and tell what went wrong or how often it was asked."""
    registry, answers, ended = Registry.open(directory), 0, False
    try:
        while not ended:
            ended = stop.wait(0.0005)  # leaves the publisher its turn
            registry = Registry.open(directory) if anew else registry
            registry.refresh()
            for op in ("rmsnorm", "softmax"):
                found = registry.lookup(**{**ASK, "op": op})
                assert found.kernel.entry_point == f"publication_{found.evidence.promoted_seq}"
                assert found.evidence.promoted_seq == found.evidence.verified_seq
                answers += 1
            assert registry.health().ok
        tell(answers)
    except (ForgeError, AssertionError, OSError) as error:
        tell(repr(error))


def test_swaps_under_load_leave_no_failed_and_no_torn_answer(tmp_path):
    publish_nth(tmp_path, 1)
    context = multiprocessing.get_context("fork")
    stop, told, own = context.Event(), context.Queue(), []
    readers = [
        *(context.Process(target=ask_until, args=(tmp_path, stop, told.put), kwargs={"anew": a}) for a in (0, 1)),
        *(threading.Thread(target=ask_until, args=(tmp_path, stop, own.append), kwargs={"anew": a}) for a in (0, 1)),
    ]
    for reader in readers:
        reader.start()
    for number in range(2, SWAPS):
        publish_nth(tmp_path, number)
    stop.set()
    saw = [told.get(timeout=120), told.get(timeout=120)]
    for reader in readers:
        reader.join(120)
    assert len(own) == 2
    assert all(isinstance(one, int) and one > 0 for one in [*saw, *own]), [*saw, *own]


def test_threads_that_share_a_registry_and_refresh_it_never_go_back(tmp_path):
    publish_nth(tmp_path, 1)
    registry, stop, wrong = Registry.open(tmp_path), threading.Event(), []

    def read() -> None:
        newest = 0
        while not stop.wait(0.001):
            registry.refresh()
            now = seen(registry)
            if now < newest:
                wrong.append((newest, now))
            newest = now

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(2, SWAPS):
        publish_nth(tmp_path, number)
    stop.set()
    for reader in readers:
        reader.join(120)
    assert wrong == []
    registry.refresh()
    assert seen(registry) == SWAPS - 1


def test_an_answer_stays_what_it_was_when_the_registry_moves_on(history, tmp_path):
    kernel_id = promoted(history)
    registry = published(history, tmp_path)
    before = registry.lookup(**ASK)
    document = before.evidence.document()
    revoke(history, kernel_id)
    publish(history, tmp_path)
    assert registry.health().stale
    assert registry.lookup(**ASK) is before
    assert registry.refresh()
    assert not registry.health().stale
    assert registry.lookup(**ASK).match == "none"
    assert (before.match, before.kernel.kernel_id, before.evidence.document()) == ("exact", kernel_id, document)
    assert before.generation != registry.generation


def test_nothing_that_is_given_out_can_be_changed(history, tmp_path):
    promoted(history, shapes=EDGES)
    registry = published(history, tmp_path)
    found = registry.lookup(**ASK)
    before = (found.kernel.kernel_id, found.evidence.document())
    for value in (found, found.kernel, found.evidence, registry.health(), Policy()):
        for name in [*(name for name in dir(value) if not name.startswith("__")), "anything"]:
            with pytest.raises(AttributeError):
                setattr(value, name, "other")
            with pytest.raises(AttributeError):
                delattr(value, name)
        with pytest.raises(TypeError):
            vars(value)
    with pytest.raises(TypeError):
        found.evidence.shape["batch"] = 1
    found.rejected.append(("x", "y"))
    found.evidence.document()["shape"]["batch"] = 1
    again = registry.lookup(**ASK)
    assert (again.kernel.kernel_id, again.evidence.document()) == before
    assert again.rejected == []


def test_the_askers_own_shape_may_change_after_the_answer(history, tmp_path):
    promoted(history, shapes=EDGES)
    registry, shape = published(history, tmp_path), dict(ASK["shape"])
    found = registry.lookup(**{**ASK, "shape": shape})
    shape["batch"] = 10**6
    assert registry.lookup(**{**ASK, "shape": shape}).match == "none"
    assert dict(found.evidence.shape) == ASK["shape"]
    assert registry.lookup(**ASK).match == "exact"


def test_the_same_size_and_time_do_not_hide_another_pointer(history, tmp_path):
    promoted(history)
    registry = published(history, tmp_path)
    pointer = tmp_path / "kernel_registry" / "current.json"
    about, content = pointer.stat(), pointer.read_bytes()
    assert not registry.refresh()
    assert not registry.health().stale
    pointer.write_bytes(content.replace(b"{", b"[", 1))
    os.utime(pointer, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert not registry.refresh()
    assert not registry.health().ok


def test_a_publication_that_is_mended_is_taken_up_though_its_pointer_stays(tmp_path):
    publish_nth(tmp_path, 1)
    registry = Registry.open(tmp_path)
    publish_nth(tmp_path, 2)
    named = next(path for path in tmp_path.glob("lookup-*.json") if b"publication_2" in path.read_bytes())
    hidden = named.rename(tmp_path / "hidden")
    assert not registry.refresh()
    assert (registry.health().ok, registry.health().stale) == (False, True)
    assert seen(registry) == 1
    hidden.rename(named)
    assert registry.refresh()
    assert registry.health().ok
    assert seen(registry) == 2


def test_a_registry_that_vanishes_keeps_answering_and_is_stale(tmp_path):
    publish_nth(tmp_path / "registry", 1)
    registry = Registry.open(tmp_path / "registry")
    assert seen(registry) == 1
    (tmp_path / "registry").rename(tmp_path / "gone")
    assert registry.health().stale
    assert not registry.refresh()
    health = registry.health()
    assert (health.ok, health.stale, health.ledger_seq) == (False, True, 1)
    assert "can't be read" in health.error
    assert seen(registry, "softmax") == 1


def test_health_says_when_the_pointer_was_written(tmp_path):
    publish_nth(tmp_path, 1)
    assert Registry.open(tmp_path).health().published_s == (tmp_path / "current.json").stat().st_mtime_ns / 1e9


def test_a_child_of_a_refreshing_process_can_refresh(tmp_path):
    publish_nth(tmp_path, 1)
    registry = Registry.open(tmp_path)
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    with registry._own_lock():
        assert not registry.refresh(), "another thread is at it"
        publish_nth(tmp_path, 2)
        child = context.Process(target=lambda: told.put(registry.refresh()))
        child.start()
        assert told.get(timeout=120) is True
        child.join(120)
    assert registry.refresh()


def test_more_answers_than_are_kept_are_still_right(tmp_path, monkeypatch):
    monkeypatch.setattr("forge.lookup.registry.ANSWERS_KEPT", 3)
    monkeypatch.setattr("forge.lookup.generation.CHOICES_KEPT", 3)
    publish_nth(tmp_path, 1)
    registry = Registry.open(tmp_path)
    matches = {1: "covered", 16: "exact", 64: "none"}
    for batch in [*range(1, 20), 1, 16, 64]:
        shape, policy = {"batch": batch, "hidden_size": 4096}, Policy(max_octaves=4 + batch)
        assert registry.lookup(**{**ASK, "shape": shape}, policy=policy).match == matches.get(batch, "none")
    assert len(registry._shown.generation.answers) <= 3
