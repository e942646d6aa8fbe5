"""Which bytes of an SQLite file hold nothing: found by walking its pages, without SQLite.

A byte that no page, cell or header counts as content can't carry a record. The layout is sqlite.org/fileformat2.html;
only what a ledger has is read (no auto-vacuum, UTF-8).
"""

from collections.abc import Iterator

INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
UNREAD_HEADER = {
    **dict.fromkeys(range(18, 20), "journal mode"),
    **dict.fromkeys(range(24, 28), "change counter"),
    **dict.fromkeys(range(40, 44), "schema cookie"),
    **dict.fromkeys(range(44, 47), "high bytes of the schema's format"),
    **dict.fromkeys(range(48, 52), "cache size"),
    **dict.fromkeys(range(56, 59), "high bytes of the encoding"),
    **dict.fromkeys(range(72, 92), "reserved"),
    **dict.fromkeys(range(92, 96), "version-valid-for"),
    **dict.fromkeys(range(96, 100), "version of the last writer"),
}
"""Bytes of the file's header that say nothing about rows: how to write, when to drop a cache, and space."""
ENCODING, ENCODING_BITS = 59, 0b11
"""Of the encoding's last byte SQLite reads two bits."""
UTF_8 = (0, 1)
"""What these two bits are for UTF-8; a file that says nothing is read as that, too."""
NUMBERED = (b"event", b"ledger_meta")
"""Tables whose first column is the row's number, which stands before the record; in it there is an unread NULL."""


class Pages:
    """The file's pages, and for each the ranges that hold something."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size = int.from_bytes(content[16:18], "big")
        self._used = bytearray(len(content))
        self._numbers: set[int] = set()
        self._mark(0, 100)
        self._schema_numbers = set(self._row_numbers(1))
        self._tree(1)
        for name, root in self._roots():
            self._tree(root, numbered=name in NUMBERED)
        self._free_list()

    def unused(self, place: int, bit: int) -> str | None:
        """Why a bit of the byte at `place` holds nothing; None if it does."""
        if place in UNREAD_HEADER:
            return UNREAD_HEADER[place]
        if place == ENCODING and not ENCODING_BITS >> bit & 1:
            return "high bits of the encoding"
        if place == ENCODING and (self._content[place] ^ 1 << bit) & ENCODING_BITS in UTF_8:
            return "an encoding left unsaid"
        if place in self._numbers:
            return "what stands for the row's number"
        if place in self._schema_numbers:
            return "the number of a row of the schema"
        return None if self._used[place] else "free space"

    def _mark(self, start: int, length: int) -> None:
        self._used[start : start + length] = b"\1" * length

    def _number(self, place: int, length: int) -> int:
        return int.from_bytes(self._content[place : place + length], "big")

    def _varint(self, place: int) -> tuple[int, int]:
        """A variable-length integer, and the place after it."""
        value = 0
        for count in range(8):
            byte = self._content[place + count]
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value, place + count + 1
        return value << 8 | self._content[place + 8], place + 9

    def _roots(self) -> Iterator[tuple[bytes, int]]:
        """The name and root page of each table and index: columns of every row of the schema."""
        for payload in self._payloads(1):
            header, place = _varint(payload, 0)
            types = []
            while place < header:
                kind, place = _varint(payload, place)
                types.append(kind)
            name = header + _length(types[0])
            start = header + sum(map(_length, types[:3]))
            root = int.from_bytes(payload[start : start + _length(types[3])], "big")
            if root:  # a trigger has none
                yield payload[name : name + _length(types[1])], root

    def _payloads(self, page: int) -> Iterator[bytes]:
        """The records of a table whose rows fit on their pages, or go on in overflow pages."""
        for kind, cell in self._cells(page):
            if kind == TABLE_INTERIOR:
                yield from self._payloads(self._number(cell, 4))
            else:
                length, place = self._varint(cell)
                _, place = self._varint(place)
                yield self._whole(place, length, kind)
        start = self._start(page)
        if self._content[start] == TABLE_INTERIOR:
            yield from self._payloads(self._number(start + 8, 4))

    def _row_numbers(self, page: int) -> Iterator[int]:
        """Where the numbers of a table's rows stand; another one that keeps their order is as good."""
        for kind, cell in self._cells(page):
            if kind == TABLE_INTERIOR:
                yield from self._row_numbers(self._number(cell, 4))
            else:
                _, place = self._varint(cell)
                yield from range(place, self._varint(place)[1])
        start = self._start(page)
        if self._content[start] == TABLE_INTERIOR:
            yield from self._row_numbers(self._number(start + 8, 4))

    def _whole(self, place: int, length: int, kind: int) -> bytes:
        local = self._local(length, kind)
        payload = self._content[place : place + local]
        following = self._number(place + local, 4) if local < length else 0
        while following:
            start = (following - 1) * self.size
            payload += self._content[start + 4 : start + self.size]
            following = self._number(start, 4)
        return payload[:length]

    def _start(self, page: int) -> int:
        return (page - 1) * self.size + (100 if page == 1 else 0)

    def _cells(self, page: int) -> Iterator[tuple[int, int]]:
        """The page's kind and where each of its cells begins."""
        start = self._start(page)
        kind = self._content[start]
        pointers = start + (12 if kind in (INDEX_INTERIOR, TABLE_INTERIOR) else 8)
        for number in range(self._number(start + 3, 2)):
            yield kind, (page - 1) * self.size + self._number(pointers + 2 * number, 2)

    def _tree(self, page: int, *, numbered: bool = False) -> None:
        """Mark a page's header, pointers and cells, its free blocks' links, and the pages below it."""
        start = self._start(page)
        kind, cells = self._content[start], self._number(start + 3, 2)
        interior = kind in (INDEX_INTERIOR, TABLE_INTERIOR)
        self._mark(start, (12 if interior else 8) + 2 * cells)
        for _, cell in self._cells(page):
            self._cell(kind, cell, numbered=numbered)
        if interior:
            self._tree(self._number(start + 8, 4), numbered=numbered)
        block = self._number(start + 1, 2)
        while block:
            place = (page - 1) * self.size + block
            self._mark(place, 4)
            block = self._number(place, 2)

    def _cell(self, kind: int, cell: int, *, numbered: bool) -> None:
        place = cell
        if kind in (INDEX_INTERIOR, TABLE_INTERIOR):
            self._tree(self._number(cell, 4), numbered=numbered)
            place += 4
        length, place = self._varint(place)
        if kind == TABLE_INTERIOR:
            self._mark(cell, place - cell)
            return
        if kind == TABLE_LEAF:
            _, place = self._varint(place)
            if numbered:
                self._numbers.add(self._varint(place)[1])
        local = self._local(length, kind)
        self._mark(cell, place + local - cell)
        if local < length:
            self._mark(place + local, 4)
            self._overflow(self._number(place + local, 4), length - local)

    def _local(self, length: int, kind: int) -> int:
        """How much of a record stands on the page itself."""
        most = self.size - 35 if kind == TABLE_LEAF else (self.size - 12) * 64 // 255 - 23
        if length <= most:
            return length
        least = (self.size - 12) * 32 // 255 - 23
        fitting = least + (length - least) % (self.size - 4)
        return fitting if fitting <= most else least

    def _overflow(self, page: int, length: int) -> None:
        start = (page - 1) * self.size
        here = min(length, self.size - 4)
        self._mark(start, 4 + here)
        if length > here:
            self._overflow(self._number(start, 4), length - here)

    def _free_list(self) -> None:
        trunk = self._number(32, 4)
        while trunk:
            start = (trunk - 1) * self.size
            self._mark(start, 8 + 4 * self._number(start + 4, 4))
            trunk = self._number(start, 4)


def _varint(record: bytes, place: int) -> tuple[int, int]:
    value = 0
    while record[place] >= 0x80:
        value = value << 7 | record[place] & 0x7F
        place += 1
    return value << 7 | record[place], place + 1


def _length(kind: int) -> int:
    """How many bytes a value of a serial type takes."""
    return (kind - 12) // 2 if kind >= 12 else (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)[kind]
