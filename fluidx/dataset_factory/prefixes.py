"""What may stand before the slots of a line: an id, a text, a log key.

Each is a slot of one word, ``1 word``, in this order. Ids and texts are for people
and are left out. A log key (``set_parse_logkey``) is 32 hexadecimal digits: 11 of no
meaning, 3 of the place that a sample was shown at, 2 of its rank there, and 16 of the
search that it belongs to, which the samples of a page view share.
"""

from __future__ import annotations

from dataclasses import dataclass

from .columns import Slot

__all__ = ["SEARCH_ID", "Prefixes"]

#: a slot that no variable has: the search of each sample
SEARCH_ID = Slot("@search_id", False, True, (-1, 1))


@dataclass(frozen=True)
class Prefixes:
    """Which of them lines have."""

    ins_id: bool = False
    content: bool = False
    logkey: bool = False

    def __bool__(self) -> bool:
        return self.ins_id or self.content or self.logkey

    @property
    def slots(self) -> list[Slot]:
        """What `bare` leaves in front of a line."""
        return [SEARCH_ID] if self.logkey else []

    def bare(self, lines: list[bytes], file: str, first: int) -> list[bytes]:
        """The lines without them, but for the search as a number.

        ValueError names file and line.
        """
        names = [n for n in ("ins_id", "content", "logkey") if getattr(self, n)]
        made = []
        for number, line in enumerate(lines, first):
            words = line.split(None, 2 * len(names))
            if not words:
                made.append(line)
                continue
            heads, rest = words[: 2 * len(names)], words[2 * len(names) :]
            for i, name in enumerate(names):
                if heads[2 * i : 2 * i + 1] != [b"1"] or len(heads) < 2 * i + 2:
                    came = b" ".join(heads[2 * i : 2 * i + 2]).decode(errors="replace")
                    raise ValueError(
                        f"{file}:{number}: {name}: expected 1 and one word, came "
                        f"{came!r}"
                    )
            if self.logkey:
                rest.insert(0, b"1 %d" % _search(heads[-1], file, number))
            made.append(b" ".join(rest))
        return made


def _search(key: bytes, file: str, number: int) -> int:
    try:
        if len(key) != 32:
            raise ValueError
        return int(key[16:], 16)
    except ValueError:
        raise ValueError(
            f"{file}:{number}: logkey: expected 32 hexadecimal digits, came "
            f"{key.decode(errors='replace')!r}"
        ) from None
