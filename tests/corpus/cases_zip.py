"""Zip archives that lie: bombs, overlaps, traversal, directories that contradict themselves."""

from __future__ import annotations

import dataclasses
import struct
import zlib
from pathlib import Path

from case import Case, write_bytes

MARKERS = {"r/archive_format": b"pt2", "r/archive_version": b"0", "r/byteorder": b"little", "r/.data/version": b"6\n"}


@dataclasses.dataclass
class Entry:
    """One entry; what is None follows from the data. `local_…` is what its own header says, if it lies there."""

    name: bytes
    data: bytes = b""
    flags: int = 0x800
    method: int = 0
    crc: int | None = None
    size: int | None = None
    stored_size: int | None = None
    offset: int | None = None
    extra: bytes = b""
    local_name: bytes | None = None
    local_size: int | None = None
    local_flags: int | None = None


def archive(entries: list[Entry], **end) -> bytes:
    """An archive of these entries; `end` overrides fields of the end record (see end_record)."""
    out, central = b"", b""
    for entry in entries:
        crc = zlib.crc32(entry.data) if entry.crc is None else entry.crc
        stored = len(entry.data) if entry.stored_size is None else entry.stored_size
        size = stored if entry.size is None else entry.size
        offset = len(out) if entry.offset is None else entry.offset
        if entry.offset is None:
            name = entry.name if entry.local_name is None else entry.local_name
            flags = entry.flags if entry.local_flags is None else entry.local_flags
            local_size = size if entry.local_size is None else entry.local_size
            out += struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, flags, entry.method, 0, 33, crc, stored, local_size,
                               len(name), 0) + name + entry.data
        central += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, entry.flags, entry.method, 0, 33, crc, stored,
                               size, len(entry.name), len(entry.extra), 0, 0, 0, 0, offset) + entry.name + entry.extra
    return out + central + end_record(len(out), len(central), len(entries), **end)


def end_record(offset: int, size: int, count: int, *, offset_delta=0, size_delta=0, count_delta=0, disk=0, comment=0,
               before=b"") -> bytes:
    return before + struct.pack("<IHHHHIIH", 0x06054B50, disk, disk, count + count_delta, count + count_delta,
                                size + size_delta, offset + offset_delta, comment)


def wide_end(offset: int, size: int, count: int) -> bytes:
    """A zip64 end record and its locator, which points at byte `offset + size`."""
    return (struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, offset)
            + struct.pack("<IIQI", 0x07064B50, 0, offset + size, 1))


def sparse_entry(path: Path) -> None:
    """Small markers, and a model of 10 GB of zeros, all there (as a hole)."""
    small = [Entry(name.encode(), data) for name, data in MARKERS.items()]
    name, size = b"r/models/model.json", 10_000_000_000
    body = archive(small)
    body = body[: body.index(struct.pack("<I", 0x02014B50))]
    wide = struct.pack("<HHQQ", 1, 16, size, size)
    header = struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0x800, 0, 0, 33, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(name), 20)
    start = len(body)
    full = archive(small)
    directory = full[len(body):-22] + struct.pack(
        "<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, 0x800, 0, 0, 33, 0, 0xFFFFFFFF, 0xFFFFFFFF, len(name), 20, 0, 0, 0,
        0, start) + name + wide
    with open(path, "wb") as out:
        out.write(body + header + name + wide)
        out.seek(size, 1)
        at = out.tell()
        out.write(directory + wide_end(at, len(directory), 5))
        out.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 5, 5, len(directory), 0xFFFFFFFF, 0))


def sparse_directory(path: Path) -> None:
    with open(path, "wb") as out:
        out.truncate(8_000_000_000)
        out.seek(0, 2)
        out.write(wide_end(0, 8_000_000_000, 1) + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 1, 1, 2**32 - 1, 2**32 - 1, 0))


def cases() -> list[Case]:
    corrupt, unsupported = "corrupt-file", "unsupported-feature"
    a, b = Entry(b"r/a", b"0123456789"), Entry(b"r/b", b"hello")
    deflated = zlib.compress(bytes(50_000_000), 9)[2:-4]
    plain = archive([a, b])
    directory = plain.index(struct.pack("<I", 0x02014B50))
    damaged = archive([Entry(name.encode(), data, crc=1 if "format" in name else None)
                       for name, data in MARKERS.items()])
    same = [Entry(b"r/%03d" % i, b"", stored_size=10, crc=zlib.crc32(b"0123456789"), offset=0) for i in range(500)]
    rows = [
        ("empty", corrupt, "not a usable zip file: it is empty", b""),
        ("text", corrupt, "it does not begin like one", b"not a zip\n" * 50),
        ("truncated", corrupt, "its directory is missing, the file ends after", plain[:-5]),
        ("bytes_after_end", corrupt, "4 bytes follow its end", plain + b"more"),
        ("comment_beyond_end", corrupt, "9 bytes are missing at its end", archive([a], comment=9)),
        ("split", corrupt, "one part of a split archive", archive([a], disk=3)),
        ("too_many_entries", corrupt, "claims 60002 entries", archive([a, b], count_delta=60_000)),
        ("too_few_entries", corrupt, "its 1 entries take 49", archive([a, b], count_delta=-1)),
        ("directory_at_start", corrupt, "at byte 0 does not end where its end record begins",
         archive([a, b], offset_delta=-directory)),
        ("directory_beyond_end", corrupt, "at byte 4000000000 does not end where",
         archive([a, b], offset_delta=4_000_000_000 - directory)),
        ("directory_of_4_gb", corrupt, "its directory of 4000000000 bytes",
         archive([a, b], size_delta=4_000_000_000 - (len(plain) - 22 - directory))),
        ("no_header_there", corrupt, 'entry "r/c" has no header at byte 7',
         archive([a, dataclasses.replace(a, name=b"r/c", offset=7)])),
        ("garbage_in_directory", corrupt, "byte 49 of its directory does not begin an entry",
         plain[: directory + 49] + b"XXXX" + plain[directory + 53:]),
        ("name_beyond_directory", corrupt, "the last entry of its directory is cut off",
         plain[: directory + 49 + 28] + b"\xff\xff" + plain[directory + 49 + 30:]),
        ("locator_to_nowhere", corrupt, "it needs 56 bytes at byte 1152921504606846976",
         archive([a], before=struct.pack("<IIQI", 0x07064B50, 0, 1 << 60, 1))),
        ("locator_to_itself", corrupt, "where no zip64 record is",
         archive([a], before=struct.pack("<IIQI", 0x07064B50, 0, 40, 1))),
        ("two_truths", corrupt, "its two end-of-directory records contradict each other",
         archive([a], before=wide_end(0, len(archive([a])) - 22, 7))),
        ("wide_field_missing", corrupt, 'entry "r/a" lacks its zip64 field', archive([Entry(b"r/a", b"x", size=2**32 - 1)])),
        ("wide_field_short", corrupt, "the zip64 field of entry",
         archive([Entry(b"r/a", b"x", size=2**32 - 1, extra=struct.pack("<HHI", 1, 4, 1))])),
        ("extra_cut_off", corrupt, "an extra field of entry",
         archive([Entry(b"r/a", b"x", extra=struct.pack("<HHI", 1, 400, 1))])),
        ("bomb", unsupported, 'entry "r/models/model.json" of bomb.pt2 is compressed (method 8)',
         archive([Entry(b"r/models/model.json", deflated, method=8, crc=zlib.crc32(bytes(50_000_000)), size=50_000_000)])),
        ("unknown_method", unsupported, "is compressed (method 99)", archive([Entry(b"r/a", b"x", method=99)])),
        ("encrypted", unsupported, "is encrypted", archive([Entry(b"r/a", b"x", flags=0x801)])),
        ("overlap", corrupt, "entries overlap: one ends at byte 43, the next begins at byte 0",
         archive([a, Entry(b"r/a", b"", stored_size=10, crc=zlib.crc32(a.data), offset=0)])),
        ("one_body_500_names", corrupt, 'entry "r/001" has another name in its own header',
         archive([Entry(b"r/000", b"0123456789"), *same[1:]])),
        ("nested_overlap", corrupt, "entries overlap: one ends at byte 78",
         archive([Entry(b"r/a", archive([Entry(b"r/b", b"x")])[:45]), Entry(b"r/b", crc=zlib.crc32(b"x"), stored_size=1,
                                                                           offset=33)])),
        ("claims_4_gb", corrupt, "claims 4000000000 bytes from byte 33", archive([Entry(b"r/a", b"x", stored_size=4 * 10**9)])),
        ("begins_in_directory", corrupt, 'entry "r/b" begins at byte 60, not before the directory',
         archive([a, dataclasses.replace(b, offset=60)])),
        ("stored_size_differs", corrupt, "claims 50 bytes stored as 1", archive([Entry(b"r/a", b"x", size=50)])),
        ("parent_name", corrupt, 'the name "r/../../etc/x"', archive([Entry(b"r/../../etc/x", b"x")])),
        ("absolute_name", corrupt, 'the name "/etc/x"', archive([Entry(b"/etc/x", b"x")])),
        ("backslash_name", corrupt, 'the name "r\\\\..\\\\x"', archive([Entry(b"r\\..\\x", b"x")])),
        ("drive_name", corrupt, 'the name "C:/x"', archive([Entry(b"C:/x", b"x")])),
        ("nul_name", corrupt, "holds a NUL", archive([Entry(b"r/a\0.json", b"x")])),
        ("empty_name", corrupt, 'the name "" of an entry', archive([Entry(b"", b"x")])),
        ("name_not_utf8", corrupt, "of an entry is not UTF-8", archive([Entry(b"r/\xff", b"x")])),
        ("folder_with_contents", corrupt, 'folder "r/sub/" has contents', archive([Entry(b"r/sub/", b"x")])),
        ("same_name_twice", corrupt, 'has two entries named "r/a"', archive([a, a])),
        ("other_local_name", corrupt, 'entry "r/a" has another name', archive([Entry(b"r/a", b"x", local_name=b"r/z")])),
        ("other_local_flags", corrupt, "has other flags or another method",
         archive([Entry(b"r/a", b"x", local_flags=0)])),
        ("other_local_size", corrupt, "has another size or checksum", archive([Entry(b"r/a", b"x", local_size=9)])),
        ("damaged_entry", corrupt, "but 00000001 is recorded", damaged),
    ]
    result = [Case(f"zip/{name}.pt2", code, message, write_bytes(data)) for name, code, message, data in rows]
    result += [
        Case("zip/sparse_entry.pt2", "invalid-input", 'entry "r/models/model.json" of sparse_entry.pt2 has 10.0 GB',
             sparse_entry),
        Case("zip/sparse_directory.pt2", corrupt, "its directory claims 8.00 GB", sparse_directory),
    ]
    return result
