"""Reads from the kernel's list of a process's mappings which memory is the process's own (proc(5), /proc/<pid>/maps).

A page of a file may lie at several addresses, and the operands of a call are a file. Memory that two processes share
is one too. Only private memory of no file shows what was written to it, and shows it once.
"""

from collections.abc import Iterable, Iterator

Span = tuple[int, int]
"""Address of the first byte, and that behind the last one."""


def are_own(mappings: str, spans: Iterable[Span]) -> bool:
    """Return whether each span lies in private memory of no file; the mappings are in the order of addresses."""
    own = _joined(_private(mappings))
    start, end = next(own, (0, 0))
    for first, behind in sorted(spans):
        while end and end <= first:
            start, end = next(own, (0, 0))
        if not start <= first < behind <= end:
            return False
    return True


def _private(mappings: str) -> Iterator[Span]:
    """Yield private mappings without a file. The kernel escapes line breaks in the names of files."""
    for line in mappings.split("\n"):
        addresses, rights, _, _, inode, *_ = (*line.split(maxsplit=5), *[""] * 5)
        if rights.endswith("p") and inode == "0":
            first, _, behind = addresses.partition("-")
            yield int(first, 16), int(behind, 16)


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans, with those that touch each other as one: a tensor may lie across several mappings."""
    start, end = 0, 0
    for first, behind in spans:
        if first == end:
            end = behind
            continue
        if end:
            yield start, end
        start, end = first, behind
    if end:
        yield start, end
