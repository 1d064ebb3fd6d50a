"""PURE. Sound files made hostile: bytes at random, and what each format's own rules forbid.

Where a checksum stands before a deeper layer it is made right again, so that the layer is reached.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

from dataprep.formats.crc import masked_crc32c

Mutate: TypeAlias = Callable[[bytes, Random], bytes]

MAGIC = b"\x0a\x23\xd7\xce"
MOST_BYTES = 2**18
"""Inputs that grow are cut here."""

_NUMBERS = (0, 1, 2, 127, 128, 255, 2**15, 2**16 - 1, 2**29, 2**31 - 1, 2**31, 2**32 - 1)
_LONG_NUMBERS = (*_NUMBERS, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 16, 2**64 - 1)
_BOUND = 64


def bytes_at_random(data: bytes, rng: Random) -> bytes:
    """One change that knows nothing of the format."""
    found = bytearray(data)
    at = rng.randrange(len(found) + 1)
    end = min(len(found), at + rng.choice((1, 2, 4, 8, 64, 512)))
    kind = rng.randrange(9)
    if kind == 0 and found:
        found[at % len(found)] ^= 1 << rng.randrange(8)
    elif kind == 1 and found:
        found[at % len(found)] = rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    elif kind == 2:
        found[at:at] = rng.randbytes(rng.choice((1, 3, 4, 17, 300)))
    elif kind == 3:
        del found[at:end]
    elif kind == 4:
        return bytes(found[:at])
    elif kind == 5:
        found[at:at] = found[rng.randrange(len(found) + 1) :][:_BOUND]
    elif kind == 6:
        form, numbers = rng.choice((("<I", _NUMBERS), ("<Q", _LONG_NUMBERS), (">I", _NUMBERS)))
        value = struct.pack(form, rng.choice(numbers))
        found[at : at + len(value)] = value
    elif kind == 7:
        found[at:end] = bytes(end - at)
    else:
        found += data[at:end] * rng.choice((1, 2, 50))
    return bytes(found[:MOST_BYTES])


def stacked(*mutations: Mutate) -> Mutate:
    """One of these, or a few after each other; most often one."""

    def mutate(data: bytes, rng: Random) -> bytes:
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
            data = rng.choice(mutations)(data, rng)[:MOST_BYTES]
        return data

    return mutate


def inside(
    taken: Callable[[bytes], Sequence[bytes]],
    put: Callable[[Sequence[bytes]], bytes],
    mutate: Mutate,
) -> Mutate:
    """A change within one of the payloads of a file, its frame being written anew around them."""

    def mutated(data: bytes, rng: Random) -> bytes:
        payloads = list(taken(data))
        if not payloads:
            return bytes_at_random(data, rng)
        number = rng.randrange(len(payloads))
        payloads[number] = mutate(payloads[number], rng)
        return put(payloads)

    return mutated


def tfrecord_payloads(data: bytes) -> list[bytes]:
    """Payloads as far as the lengths lead, checksums not looked at."""
    found, at = [], 0
    while at + 16 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        if at + 16 + length > len(data):
            break
        found.append(data[at + 12 : at + 12 + length])
        at += 16 + length
    return found


def tfrecords(payloads: Sequence[bytes]) -> bytes:
    """Records with right checksums."""
    parts = []
    for payload in payloads:
        length = struct.pack("<Q", len(payload))
        parts += [length, _crc(length), payload, _crc(payload)]
    return b"".join(parts)


def tfrecord_length(data: bytes, rng: Random) -> bytes:
    """A length that is not true, under a checksum that is."""
    found, at = bytearray(data), 0
    places = []
    while at + 16 <= len(data):
        places.append(at)
        at += 16 + min(struct.unpack_from("<Q", data, at)[0], len(data))
    if not places:
        return bytes_at_random(data, rng)
    at = rng.choice(places)
    length = struct.pack("<Q", rng.choice((*_LONG_NUMBERS, len(data), len(data) - 16 & 2**64 - 1)))
    found[at : at + 12] = length + _crc(length)
    return bytes(found)


def recordio_part(data: bytes, rng: Random) -> bytes:
    """Another cflag or length of one part, or a magic where there was none."""
    found = bytearray(data)
    places = [at for at in range(0, len(data) - 8, 4) if data[at : at + 4] == MAGIC]
    if not places or rng.random() < 0.2:
        at = rng.randrange(len(found) + 1) // 4 * 4
        found[at : at + 4] = MAGIC
        return bytes(found)
    at = rng.choice(places)
    (word,) = struct.unpack_from("<I", data, at + 4)
    cflag, length = word >> 29, word & 2**29 - 1
    if rng.random() < 0.5:
        cflag = rng.randrange(8)
    else:
        length = rng.choice((0, 1, 3, 4, length + 4, max(0, length - 4), 2**29 - 1, 2**28))
    found[at + 4 : at + 8] = struct.pack("<I", cflag << 29 | length)
    return bytes(found)


def image_header(data: bytes, rng: Random) -> bytes:
    """Another flag, label or id of an image record."""
    if len(data) < 24:
        return bytes_at_random(data, rng)
    flag, label, id_, id2 = struct.unpack_from("<IfQQ", data)
    labels = (0.0, -1.0, 0.5, 1e30, float("nan"), float("inf"), -float("inf"), 2.0**31)
    kind = rng.randrange(3)
    if kind == 0:
        flag = rng.choice((0, 1, 2, len(data), (len(data) - 24) // 4, 2**30, 2**32 - 1))
    elif kind == 1:
        label = rng.choice(labels)
    else:
        id_, id2 = rng.choice(_LONG_NUMBERS), rng.choice(_LONG_NUMBERS)
    return struct.pack("<IfQQ", flag, label, id_, id2) + data[24:]


def message(data: bytes, rng: Random) -> bytes:
    """A protobuf message in which a tag, a length or a number stands that should not."""
    places = [at for at, byte in enumerate(data[:4096]) if byte in (0x08, 0x0A, 0x0D, 0x12, 0x1A)]
    at = rng.choice(places) if places else 0
    inserted = rng.choice(
        (
            _varint(rng.randrange(1, 20) << 3 | rng.randrange(8)),
            _varint(rng.choice(_LONG_NUMBERS)),
            b"\xff" * rng.randrange(1, 12),
            b"\x0b" * rng.choice((1, 100, 3000)),  # groups that begin
            b"\x0b\x0c" * rng.choice((1, 40)),
            b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
            b"\x0a\x00" * rng.choice((1, 500)),
            b"\x12\x04\xff\xfe\xfd\xfc",
        )
    )
    replaced = at + rng.choice((0, 1, 2, len(inserted)))
    return data[:at] + inserted + data[replaced:]


def nested(data: bytes, rng: Random) -> bytes:
    """A change deep in a message of messages, all lengths around it being made right."""
    fields = _fields(data)
    if not fields or rng.random() < 0.3:
        return message(data, rng) if rng.random() < 0.7 else bytes_at_random(data, rng)
    number = rng.randrange(len(fields))
    tag, content = fields[number]
    kind = rng.randrange(6)
    if kind == 0:
        del fields[number]
    elif kind == 1:
        fields.insert(rng.randrange(len(fields) + 1), (tag, content))
    elif kind == 2:
        fields[number] = (rng.choice((0x0A, 0x12, 0x1A, 0x22, tag)), content)
    else:
        fields[number] = (tag, nested(content, rng) if content else rng.randbytes(3))
    return b"".join(_varint(tag) + _varint(len(body)) + body for tag, body in fields)


def _fields(data: bytes) -> list[tuple[int, bytes]]:
    """The delimited fields of a message that has no others; nothing where it is none."""
    found, at = [], 0
    while at < len(data):
        tag = data[at]
        size, at = _read_varint(data, at + 1)
        if tag & 7 != 2 or not 0 <= size <= len(data) - at:
            return []
        found.append((tag, data[at : at + size]))
        at += size
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, at + shift + 1
    return -1, at


def _varint(value: int) -> bytes:
    low = bytearray()
    while value > 0x7F:
        low.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*low, value))


def _crc(data: bytes) -> bytes:
    return struct.pack("<I", masked_crc32c(data))


_TEXTS = ("", "x", "\ud800", "\0", "../../etc/passwd", "a\nb", "9" * 5000, "\u2028", "train", "nan")
_PLAIN: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 9, 2**31, 2**53, 2**63, 2**64, 10**400, -(10**18)),
    *(0.5, 1e308, float("nan"), float("inf"), -float("inf")),
    *([], {}, [[]], [None], {"": None}, [0] * 1000, {"schema": 9}),
)


def json_tree(data: bytes, rng: Random) -> bytes:
    """A JSON file with another value, type or key somewhere, or in a form that few write."""
    kind = rng.randrange(22)
    if kind == 0:
        return bytes_at_random(data, rng)
    if kind == 20:
        return rng.choice((b"\xef\xbb\xbf" + data, data.replace(b"\n", b"\r\n"), data + data))
    if kind == 21:  # longer than Python makes a number of, and what JSON knows none for
        number = rng.choice((b"9" * 5000, b"-" + b"1" * 4301, b"1e999", b"NaN", b"-Infinity"))
        return re.sub(rb"(?<=[:\[, ])-?\d+(?=[,\]}\s])", number, data, count=rng.choice((1, 3)))
    if kind == 1:
        deep = b"[" * rng.choice((10, 900, 100_000))
        return deep if rng.random() < 0.5 else data.replace(b"1", deep, 1)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return bytes_at_random(data, rng)
    if kind == 2:
        return json.dumps(content).encode("utf-16")
    if kind == 3 and isinstance(content, dict) and content:
        key = rng.choice(sorted(content))
        twice = json.dumps({key: hostile_value(rng)})[1:-1]
        return b"{" + twice.encode() + b"," + json.dumps(content).encode()[1:]
    try:
        return json.dumps(_changed(content, rng)).encode() + b"\n"
    except (ValueError, RecursionError):
        return bytes_at_random(data, rng)


def hostile_value(rng: Random) -> Any:
    """A value that few expect."""
    return rng.choice(_TEXTS) if rng.random() < 0.3 else rng.choice(_PLAIN)


def _changed(content: Any, rng: Random, depth: int = 0) -> Any:
    inner: list[Any] = []
    if isinstance(content, dict):
        inner = sorted(content)
    elif isinstance(content, list):
        inner = list(range(len(content)))
    if not inner or (depth and rng.random() < 0.2):
        return _near(content, rng) if rng.random() < 0.5 else hostile_value(rng)
    key = rng.choice(inner)
    copied = content.copy()
    kind = rng.randrange(8)
    if kind == 0:
        del copied[key]
    elif kind == 1 and isinstance(copied, dict):
        copied[rng.choice((*_TEXTS, "schema", "added"))] = hostile_value(rng)
    elif kind == 1:
        copied.insert(key, copied[key])
    else:
        copied[key] = _changed(content[key], rng, depth + 1)
    return copied


def _near(value: Any, rng: Random) -> Any:
    """Another value of the same type: what a check of types does not see."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, value * 1000, value + 2**40))
    if isinstance(value, float):
        return rng.choice((-value, value * 1e9, 0.0))
    if isinstance(value, str):
        return rng.choice((value + "x", value[:-1], value.upper(), value[::-1], value * 100))
    return [value]


_SNIPPETS = (
    *("&a [*a]", "*nothing", "!!python/object/apply:os.system [ls]", "!!binary x", "!tag x"),
    *("[" * 5000, "{" * 3000, "- " * 2000, "? ? ? x", "'", '"', "|", ">", "@", "`", "%YAML 3.0"),
    *("1e999", "-.inf", ".nan", "0x" + "f" * 5000, "9" * 5000, "2024-13-01", "1_0_0", "~", "\t"),
    *("12:30:45", "190:20:30", "0o7", "0b12", "<<: 3", "<<: [1, 2]", "{<<: *a}", "\x00", "\ufeff"),
    *("\ud7ff", "''", "yes", "[]", "{}", "null", "-1", "true", "x: y: z", "--- a\n--- b", "..."),
)


def yaml_text(data: bytes, rng: Random) -> bytes:
    """YAML with another value, indentation, tag, alias or key."""
    kind = rng.randrange(10)
    if kind == 0:
        return bytes_at_random(data, rng)
    if kind == 1:
        return billion_laughs(rng)
    lines = data.decode("utf-8", "replace").splitlines()
    if not lines:
        return rng.choice(_SNIPPETS).encode()
    number = rng.randrange(len(lines))
    key, colon, value = lines[number].partition(":")
    if kind in (2, 3, 4, 5):
        lines[number] = f"{key}{colon} {rng.choice(_SNIPPETS)}"
    elif kind == 6:
        lines[number] = f"  {lines[number]}"
    elif kind == 7:
        lines.insert(number, lines[number])
    elif kind == 8:
        lines[number] = f"{key}{rng.choice(('x', '.y', ' '))}{colon}{value}"
    else:
        lines.insert(number, rng.choice(_SNIPPETS))
    return "\n".join(lines).encode("utf-8", "replace") + b"\n"


def billion_laughs(rng: Random) -> bytes:
    """Aliases of aliases: few bytes that say that they are many."""
    levels, each = rng.choice(((9, 9), (30, 2), (25, 4), (12, 30)))
    form = rng.randrange(3)
    lines = ["a0: &a0 [x, y]" if form == 0 else "a0: &a0 {x: y}"]
    for level in range(1, levels):
        names = ", ".join([f"*a{level - 1}"] * each)
        if form == 0:
            lines.append(f"a{level}: &a{level} [{names}]")
        elif form == 1:
            lines.append(f"a{level}: &a{level} {{<<: [{names}]}}")
        else:
            pairs = ", ".join(f"k{n}: *a{level - 1}" for n in range(each))
            lines.append(f"a{level}: &a{level} {{{pairs}}}")
    where = rng.choice(("source", "image", "records", "format", "split", "data", "loaders", "s3"))
    return "\n".join([*lines, f"{where}: *a{levels - 1}", ""]).encode()


_CELLS = (
    *("", '"', '""', '"a\nb"', "\t", ",", ";", "\0", "nan", "inf", "-inf", "1e999", "-1", "0.5"),
    *("9" * 400, "x" * 5000, "../x", "/x", "s3://b/k", "http://x/y", "\\x00", "\\xff", "\\", "é"),
    *("n01440764", "[", "{", "NULL", "true", "0x10", "1_000", " 1 ", "\u0660", "\u2028", "="),
)


def cells(data: bytes, rng: Random) -> bytes:
    """A table of text with another cell, line, delimiter or line end."""
    if rng.random() < 0.2:
        return bytes_at_random(data, rng)
    lines = data.split(b"\n")
    number = rng.randrange(len(lines))
    delimiter = next((d for d in (b"\t", b",", b" ") if d in lines[number]), b",")
    fields = lines[number].split(delimiter)
    at = rng.randrange(len(fields))
    cell = rng.choice(_CELLS).encode("utf-8", "replace")
    kind = rng.randrange(9)
    if kind <= 2:
        fields[at] = cell
    elif kind == 3:
        fields.insert(at, cell)
    elif kind == 4:
        del fields[at]
    elif kind == 5:
        return data.replace(delimiter, rng.choice((b";", b"\t", b",", b"|", b"  ")))
    elif kind == 6:
        return rng.choice((data.replace(b"\n", b"\r"), data.decode("latin-1").encode("utf-16")))
    elif kind == 7:
        fields[at] += rng.choice((b"\xff", b"\xc3", b"\r", b"\x1a", b"\xef\xbb\xbf"))
    else:
        fields *= rng.choice((2, 50))
    lines[number] = delimiter.join(fields)
    return b"\n".join(lines)


_XML = (
    *("<!DOCTYPE a [<!ENTITY b 'c'>]>", "&b;", "&#0;", "&#x110000;", "<![CDATA[", "<!--", "<?x ?>"),
    *("<a>" * 5000, "</annotation>", "<bndbox>", "nan", "inf", "1e999", "-5", "", "9" * 500),
    *("<object><bndbox/></object>", "\0", "xmlns='u'", "<?xml version='1.0' encoding='utf-7'?>"),
)


def xml_text(data: bytes, rng: Random) -> bytes:
    """XML with something else between two of its tags."""
    if rng.random() < 0.3:
        return bytes_at_random(data, rng)
    pieces = data.split(b">")
    at = rng.randrange(len(pieces))
    content, bracket, tag = pieces[at].partition(b"<")
    inserted = rng.choice(_XML).encode()
    pieces[at] = rng.choice((inserted + bracket + tag, content + inserted + bracket + tag))
    return b">".join(pieces)


def tar_header(data: bytes, rng: Random) -> bytes:
    """One field of a header of a tar made hostile, its checksum being right again."""
    found = bytearray(data)
    places = [at for at in range(0, len(data) - 511, 512) if data[at + 257 : at + 262] == b"ustar"]
    if not places or rng.random() < 0.15:
        return bytes_at_random(data, rng)
    at = rng.choice(places)
    kind = rng.randrange(5)
    if kind == 0:
        sizes = (b"77777777777", b"-0000000001", b"00000000000", b"xyz", b" 12 ", b"00000001000")
        found[at + 124 : at + 136] = rng.choice(sizes).ljust(12, b"\0")
    elif kind == 1:
        high = rng.choice((b"\x80", b"\xff")) + rng.choice((b"\x7f", b"\xff", b"\0")) * 11
        found[at + 124 : at + 136] = high
    elif kind == 2:
        found[at + 156 : at + 157] = rng.choice([*b"\x000123456LKSxgXVDNM~\xff"]).to_bytes(1, "big")
    elif kind == 3:
        name = rng.choice((b"../x", b"/abs", b"", b"\xff\xfe", b"a" * 100, b"./././x", b"dir/"))
        found[at : at + 100] = name.ljust(100, b"\0")[:100]
    else:
        # A pax record or a map of holes in the block that follows.
        record = rng.choice(
            (
                b"30 size=9999999999999999999\n",
                b"13 size=-512\n",
                b"12 size=1_0\n",
                b"99999999999 path=x\n",
                b"0 path=x\n",
                b"11 path=..\n",
                b"25 GNU.sparse.major=9999\n",
                b"5011 size=" + b"9" * 5000 + b"\n",
                b"x" * 40,
            )
        )
        found[at + 156 : at + 157] = rng.choice((b"x", b"g", b"S", b"L"))
        found[at + 124 : at + 136] = b"%011o\0" % len(record)
        block = record.ljust(-(-len(record) // 512) * 512, b"\0")
        found[at + 512 : at + 512 + len(block)] = block
    return with_checksums(bytes(found), at)


def with_checksums(data: bytes, at: int) -> bytes:
    """The header at ``at`` with the checksum of what it holds."""
    header = bytearray(data[at : at + 512])
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % (sum(header) & 0o777777)
    return data[:at] + bytes(header) + data[at + 512 :]
