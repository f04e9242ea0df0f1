"""Two copies of one rank's state in one mapped file of shared memory, safe against SIGKILL.

    page 0      magic, version, payload capacity of a slot, newest step that the backup has
    slot 0, 1   header page | one CRC-32 for every 4 MiB | payload

A slot's state word goes to WRITING before anything else of it changes and to COPIED after all else
did, so a process may end anywhere: either this slot is whole or it says that it is not, and the
other one was not touched. CHECKED comes from the helper, which computes the checksums.
A plain file in a tmpfs outlives every process; Python's SharedMemory is unlinked at exit.
"""

import json
import mmap
import os
import zlib
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path

from brctl.training.checkpoints.restore import Saved

PAGE_BYTES = 4096
BLOCK_BYTES = 4 << 20
MAGIC, VERSION = int.from_bytes(b"brctlslt", "little"), 1
_MAGIC, _VERSION, _CAPACITY, _BACKED_UP = range(4)
_STATE, _CHECKSUMS_CRC, _HEADER = range(3)
_JSON_AT, _JSON_BYTES = 24, PAGE_BYTES - 24


class DamagedSlotError(Exception):
    """A slot or its file is not what a rank or helper of this job wrote; says why."""


class OtherVersionError(DamagedSlotError):
    """Another brctl wrote the file, and can read it."""


class SlotState(IntEnum):
    """What a slot holds."""

    EMPTY = 0
    WRITING = 1
    COPIED = 2
    CHECKED = 3


@dataclass(frozen=True, slots=True)
class Header:
    """Whose state a slot holds, and of when.

    Attributes:
        layout: Digest of the parallel layout.
        payload_bytes: Tensors and their table together.
        table_at: Where in the payload the table of tensors begins; it ends with the payload.
    """

    job: str
    layout: str
    attempt: int
    rank: int
    world_size: int
    step: int
    payload_bytes: int
    table_at: int

    @property
    def saved(self) -> Saved:
        return Saved(self.attempt, self.step)


class Slot:
    """One copy, laid out alike in shared memory and on disk."""

    def __init__(self, image: memoryview, capacity: int) -> None:
        self._words = image[:PAGE_BYTES].cast("Q")
        self._page = image[:PAGE_BYTES]
        payload_at = PAGE_BYTES + checksum_bytes(capacity)
        self._checksums = image[PAGE_BYTES:payload_at]
        self.payload = image[payload_at : payload_at + capacity]

    @property
    def state(self) -> SlotState:
        """What the slot says it holds; EMPTY for a word that nobody writes."""
        word = self._words[_STATE]
        return SlotState(word) if word in SlotState.__members__.values() else SlotState.EMPTY

    @state.setter
    def state(self, state: SlotState) -> None:
        # One aligned store of eight bytes: nobody reads half of it.
        self._words[_STATE] = state

    def write_header(self, header: Header) -> None:
        """Say what the payload is; the caller sets the state when all of it is there."""
        self.write_header_text(json.dumps(asdict(header)).encode())

    def write_header_text(self, text: bytes) -> None:
        """The same with a header that came from elsewhere and was read by `parse_header`."""
        if len(text) > _JSON_BYTES:
            raise ValueError(f"a slot's header of {len(text)} bytes; {_JSON_BYTES} fit")
        self._page[_JSON_AT : _JSON_AT + len(text)] = text
        self._words[_HEADER] = zlib.crc32(text) << 32 | len(text)

    def header_text(self) -> bytes:
        """The header as written.

        Raises:
            DamagedSlotError: Its checksum differs.
        """
        length, crc = self._words[_HEADER] & 0xFFFFFFFF, self._words[_HEADER] >> 32
        text = bytes(self._page[_JSON_AT : _JSON_AT + min(length, _JSON_BYTES)])
        if zlib.crc32(text) != crc:
            raise DamagedSlotError("the header's checksum differs")
        return text

    def header_page(self, state: SlotState) -> bytes:
        """The header's page as it is to be on disk, with this state."""
        page = bytearray(self._page)
        memoryview(page).cast("Q")[_STATE] = state
        return bytes(page)

    def header(self) -> Header:
        """The header, with its numbers inside the slot.

        Raises:
            DamagedSlotError: It is damaged, or no header at all.
        """
        return parse_header(self.header_text(), len(self.payload))

    def add_checksums(self) -> None:
        """Compute the checksums of a COPIED slot: it is CHECKED then."""
        sums = block_checksums(self.payload[: self.header().payload_bytes])
        self.write_checksums(sums)
        self.state = SlotState.CHECKED

    def write_checksums(self, sums: bytes) -> None:
        self._checksums[: len(sums)] = sums
        self._words[_CHECKSUMS_CRC] = zlib.crc32(sums)

    def checksums(self) -> bytes:
        """The checksums as stored, four bytes a block.

        Raises:
            DamagedSlotError: They are damaged themselves.
        """
        sums = bytes(self._checksums[: 4 * block_count(self.header().payload_bytes)])
        if zlib.crc32(sums) != self._words[_CHECKSUMS_CRC]:
            raise DamagedSlotError("the checksums are damaged")
        return sums

    def verify(self) -> Header:
        """Read the whole payload again and compare.

        Raises:
            DamagedSlotError: Something differs from what was written.
        """
        header, stored = self.header(), self.checksums()
        found = block_checksums(self.payload[: header.payload_bytes])
        if found != stored:
            block = (
                next(i for i in range(0, len(stored), 4) if found[i:][:4] != stored[i:][:4]) // 4
            )
            raise DamagedSlotError(f"the checksum of block {block} differs")
        return header


class SlotFile:
    """The file of one rank's two slots."""

    def __init__(self, path: Path, mapped: memoryview, capacity: int) -> None:
        self.path = path
        self.capacity = capacity
        self._words = mapped[:PAGE_BYTES].cast("Q")
        size = slot_bytes(capacity)
        images = [mapped[PAGE_BYTES + index * size :][:size] for index in range(2)]
        self.slots = tuple(Slot(image, capacity) for image in images)

    @classmethod
    def create(cls, path: Path, capacity: int) -> "SlotFile":
        """Make a file of empty slots, every page of it allocated, readable by its owner only.

        Raises:
            OSError: The file system cannot hold it.
        """
        size = file_bytes(capacity)
        partial = path.with_name(path.name + ".new")
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            # Pages that are only promised end a rank with SIGBUS in the middle of a step.
            os.posix_fallocate(descriptor, 0, size)
            fields = memoryview(mmap.mmap(descriptor, size)).cast("Q")
        except OSError:
            partial.unlink()
            raise
        finally:
            os.close(descriptor)
        fields[_MAGIC], fields[_VERSION], fields[_CAPACITY] = MAGIC, VERSION, capacity
        partial.replace(path)
        return cls(path, fields.cast("B"), capacity)

    @classmethod
    def open(cls, path: Path) -> "SlotFile":
        """Map an existing file.

        Raises:
            DamagedSlotError: It is no file of slots, or cut.
            OSError: It cannot be opened.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            size = os.fstat(descriptor).st_size
            if size < PAGE_BYTES:
                raise DamagedSlotError(f"{size} bytes are no file of slots")
            mapped = memoryview(mmap.mmap(descriptor, size))
        finally:
            os.close(descriptor)
        return cls(path, mapped, _capacity_of(mapped))

    @property
    def backed_up(self) -> int:
        """The newest step of this attempt that the backup has whole; 0 for none."""
        return self._words[_BACKED_UP]

    @backed_up.setter
    def backed_up(self, step: int) -> None:
        self._words[_BACKED_UP] = step

    def whole(self) -> list[tuple[Slot, Header]]:
        """The slots whose copy is complete and whose header can be read, oldest first."""
        found = []
        for slot in self.slots:
            if slot.state in (SlotState.COPIED, SlotState.CHECKED):
                try:
                    found.append((slot, slot.header()))
                except DamagedSlotError:
                    continue
        return sorted(found, key=lambda pair: pair[1].saved)

    def find(self, saved: Saved) -> Slot | None:
        """The slot that holds this step; None if neither does."""
        return next((slot for slot, header in self.whole() if header.saved == saved), None)

    def oldest(self) -> Slot:
        """A slot with nothing whole in it, else the one with the older step."""
        whole = [slot for slot, _ in self.whole()]
        empty = [slot for slot in self.slots if slot not in whole]
        return (empty or whole)[0]


def parse_header(text: bytes, capacity: int) -> Header:
    """Read a header that may come from anywhere.

    Raises:
        DamagedSlotError: It is no header, or its sizes do not fit into the slot.
    """
    try:
        fields = json.loads(text)
        header = Header(**fields)
    except (ValueError, TypeError, RecursionError) as exc:
        raise DamagedSlotError("no header of a slot") from exc
    numbers = [header.attempt, header.rank, header.world_size, header.step]
    sizes = [header.payload_bytes, header.table_at]
    if not all(type(n) is int and 0 <= n < 1 << 63 for n in numbers + sizes):
        raise DamagedSlotError("a number of the header is none")
    if not isinstance(header.job, str) or not isinstance(header.layout, str):
        raise DamagedSlotError("a name of the header is none")
    if not header.table_at <= header.payload_bytes <= capacity:
        raise DamagedSlotError(f"{header.payload_bytes} bytes do not fit into {capacity}")
    return header


def block_checksums(payload: memoryview) -> bytes:
    """CRC-32 of every 4 MiB, four bytes each, little-endian."""
    starts = range(0, len(payload), BLOCK_BYTES)
    return b"".join(
        zlib.crc32(payload[start : start + BLOCK_BYTES]).to_bytes(4, "little") for start in starts
    )


def block_count(payload_bytes: int) -> int:
    """Blocks of 4 MiB, the last one perhaps shorter."""
    return -(-payload_bytes // BLOCK_BYTES)


def checksum_bytes(capacity: int) -> int:
    """Room for the checksums of a slot, in whole pages."""
    return pages(4 * block_count(capacity))


def slot_bytes(capacity: int) -> int:
    """Header, checksums and payload."""
    return PAGE_BYTES + checksum_bytes(capacity) + capacity


def file_bytes(capacity: int) -> int:
    """Size of a file of two slots for payloads of `capacity` bytes."""
    return PAGE_BYTES + 2 * slot_bytes(capacity)


def pages(size_bytes: int) -> int:
    """The size in whole pages."""
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES


def _capacity_of(mapped: memoryview) -> int:
    words = mapped[:PAGE_BYTES].cast("Q")
    if words[_MAGIC] != MAGIC:
        raise DamagedSlotError("no file of slots")
    if words[_VERSION] != VERSION:
        raise OtherVersionError(f"version {words[_VERSION]} of the file, {VERSION} can be read")
    capacity = words[_CAPACITY]
    if capacity % PAGE_BYTES or file_bytes(capacity) != len(mapped):
        raise DamagedSlotError(f"{len(mapped)} bytes instead of {file_bytes(capacity)}: cut")
    return capacity
