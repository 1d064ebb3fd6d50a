"""The scans of a JPEG that has several: how many, and whether all of its coefficients are there.

Of neither does libjpeg complain. It decodes every scan over the whole image, so that a small file
of many takes hours; and where scans are missing, it shows blocks, no colours, or grey. Scans after
ITU-T T.81, B.2.3 and G.1.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dataprep.errors import CorruptImage, ImageTooLarge
from dataprep.image import jpeg
from dataprep.image.notes import Note

MOST_SCANS = 500
"""Encoders write ten or so, and hardly more than fifty when they search for the smallest file."""

MOST_SCANNED_PIXELS = 10**9
"""Pixels times scans: a few seconds of work."""

FEW_SCANS = 24
"""Allowed to an image of any size: libjpeg itself writes up to 18."""

_EOI = 0xD9
_ALL = (1 << 64) - 1


class Scan(NamedTuple):
    """The components of a scan, a byte each, and the coefficients of which it has the bits.

    From ``high_bit``, where 0 stands for the highest, down to ``low_bit``.
    """

    components: bytes
    first: int
    last: int
    high_bit: int
    low_bit: int


def scan_notes(data: bytes, header: jpeg.JpegHeader) -> tuple[Note, ...]:
    """Hold the scans of a JPEG against its frame: ``scans_missing`` where it could be finer.

    One that ends early is left to libjpeg, which says so.

    Raises:
        ImageTooLarge: more scans than encoders write, over so many pixels.
        CorruptImage: a component has no scan, or none that begins with its mean.
    """
    if not header.several_scans:
        return ()
    pixels = header.width * header.height
    most = max(FEW_SCANS, min(MOST_SCANS, MOST_SCANNED_PIXELS // pixels))
    begun: set[int] = set()
    done = dict.fromkeys(header.components, 0)
    ended = False
    for count, scan in enumerate(scans(data, header.scan_start), 1):
        if scan is None:
            ended = True
            break
        if count > most:
            raise ImageTooLarge(
                f"more than {most} scans of {header.width} x {header.height} pixels: no encoder "
                "writes as many"
            )
        if header.frame not in jpeg.PROGRESSIVE:
            scan = Scan(scan.components, 0, 63, 0, 0)  # whatever it says: nobody heeds that
        _account(scan, begun, done)
    if not ended:
        return ()
    missing = sum(component not in begun for component in done)
    if missing:
        raise CorruptImage(f"corrupt JPEG: no scan of {missing} of its {len(done)} components")
    return () if all(bits == _ALL for bits in done.values()) else ("scans_missing",)


def lacks_pixels(data: bytes, header: jpeg.JpegHeader) -> bool:
    """Whether fewer bits follow than Huffman coding needs: one for each block of each component.

    Never of arithmetic coding, which has blocks that take none.
    """
    if header.frame in jpeg.ARITHMETIC:
        return False
    factors = [(factor >> 4, factor & 15) for factor in header.sampling]
    wide = 8 * max(1, *(across for across, _ in factors))
    high = 8 * max(1, *(down for _, down in factors))
    blocks = sum(
        -(-header.width * across // wide) * -(-header.height * down // high)
        for across, down in factors
    )
    return 8 * (len(data) - header.scan_offset) < blocks


def _account(scan: Scan, begun: set[int], done: dict[int, int]) -> None:
    if scan.first == 0 and scan.high_bit == 0:
        begun.update(scan.components)
    if scan.low_bit == 0 and scan.first <= scan.last < 64:
        bits = (1 << scan.last + 1) - (1 << scan.first)
        for component in scan.components:
            if component in done:
                done[component] |= bits


def scans(data: bytes, start: int) -> Iterator[Scan | None]:
    """Each scan from that whose parameters begin at ``start``.

    None, and then nothing, for the end-of-image marker; nothing where the file ends without one.
    """
    while True:
        count = data[start] if start < len(data) else 0
        parameters = data[start : start + 4 + 2 * count]
        if len(parameters) == 4 + 2 * count:
            first, last, approximation = parameters[-3:]
            yield Scan(parameters[1:-3:2], first, last, approximation >> 4, approximation & 15)
        position = start - 2 + int.from_bytes(data[start - 2 : start], "big")
        marker = 0
        while marker != jpeg.SOS:
            found = jpeg.NEXT_MARKER.search(data, position)
            if found is None:
                return
            marker, start = data[found.end() - 1], found.end() + 2
            if marker == _EOI:
                yield None
                return
            length = int.from_bytes(data[start - 2 : start], "big")
            position = start - 2 + max(length, 2)
