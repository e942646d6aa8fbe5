"""The same for each of many things: in order, on threads, and torch has its own threads back afterwards."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import torch

from forge.lab.parallel import parallel_map

THREADS = 3


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    yield
    torch.set_num_threads(before)


def told_in_a_new_thread() -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


@pytest.mark.parametrize("serial_up_to", [1, 100])
def test_it_answers_in_order(serial_up_to: int) -> None:
    assert parallel_map(lambda one: one * one, range(20), serial_up_to=serial_up_to) == [
        one * one for one in range(20)
    ]


def test_the_first_exception_ends_it() -> None:
    def work(one: int) -> int:
        if one == 3:
            raise ValueError(one)
        return one

    with pytest.raises(ValueError, match="3"):
        parallel_map(work, range(8), serial_up_to=1)
    assert (torch.get_num_threads(), told_in_a_new_thread()) == (THREADS, THREADS)


def test_torch_has_its_threads_back_if_one_that_came_later_leaves_last() -> None:
    came, go = threading.Event(), threading.Event()

    def waits(one: int) -> int:
        came.set()
        assert go.wait(120)
        return one

    with ThreadPoolExecutor(1) as pool:
        asides: list[Future[list[int]]] = []

        def begins_another(one: int) -> int:
            if one == 0:
                asides.append(pool.submit(parallel_map, waits, range(2), serial_up_to=1))
                assert came.wait(120)
            return one

        assert parallel_map(begins_another, range(2), serial_up_to=1) == [0, 1]
        go.set()
        assert asides[0].result() == [0, 1]
    assert (torch.get_num_threads(), told_in_a_new_thread()) == (THREADS, THREADS)
