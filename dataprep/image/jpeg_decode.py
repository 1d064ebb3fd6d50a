"""Decode JPEGs by libjpeg-turbo, and report what it does not.

Its warnings are read here: most mean lost pixels. About the scans of a JPEG that has several it
says nothing. It decodes every scan over the whole image, so that a small file of many takes hours;
and where scans are missing, it shows blocks, no colours, or grey. Scans after ITU-T T.81, B.2.3 and
G.1.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import simplejpeg

from dataprep.errors import CorruptImage, ImageTooLarge
from dataprep.image import jpeg, jpeg_repair
from dataprep.image.geometry import Pixels
from dataprep.image.policy import Note

# Of the file, or of its pixels before an end marker.
_ENDS_EARLY = "remature end of"
# What TurboJPEG says instead of why libjpeg could not read the header.
_UNREAD = "Could not determine subsampling level"
# Each of a file's flaws costs it a few more decodes.
_MOST_FLAWS = 8
_FILLED = 128  # what libjpeg puts where it has no data
_LEAST_SHARE = 0.01
_END = 0xD9  # end-of-image marker
_ALL = (1 << 64) - 1

MOST_SCANS = 500
"""Encoders write ten or so, and hardly more than fifty when they search for the smallest file."""

MOST_SCANNED_PIXELS = 10**9
"""Pixels times scans: a few seconds of work."""

FEW_SCANS = 24
"""Allowed to an image of any size: libjpeg itself writes up to 18."""


class Decoded(NamedTuple):
    """Pixels, and what had to be put up with to get them."""

    pixels: Pixels
    notes: tuple[Note, ...]


def decode(
    data: bytes, colorspace: str, least: tuple[int, int] = (0, 0), *, keep_truncated: bool = False
) -> Decoded:
    """Pixels at the smallest size that is not below ``least``; 0 x 0 stands for the whole size.

    Args:
        data: a JPEG.
        colorspace: ``RGB``, ``GRAY``, or ``CMYK`` for what is stored as that or YCCK. RGB is a
            view of memory of four bytes a pixel (``resize``).
        least: width and height in pixels.
        keep_truncated: whether a JPEG that ends early is decoded as far as it goes; libjpeg
            fills the rest with grey.

    Raises:
        CorruptImage: it is broken, or ends early.
    """
    rgb = colorspace == "RGB"
    load = partial(
        simplejpeg.decode_jpeg,
        colorspace="BGRX" if rgb else colorspace,
        min_height=least[1],
        min_width=least[0],
    )
    notes: tuple[Note, ...] = ()
    for _ in range(_MOST_FLAWS + 1):
        try:
            pixels = load(data, strict=True)
        except ValueError as error:
            warning = str(error)
        else:
            return Decoded(pixels[:, :, 2::-1] if rgb else pixels, notes)
        mended = jpeg_repair.without(data, warning, partial(_warning, load))
        if mended is None:
            break
        data = mended
        if not jpeg_repair.is_of_the_profile(warning):
            notes = ("recovered",)
    if keep_truncated and _ENDS_EARLY in warning:
        return Decoded(_kept(data, load, rgb=rgb), (*notes, "truncated_kept"))
    if _UNREAD in warning:
        raise CorruptImage("corrupt JPEG: libjpeg cannot read its header")
    kind = "truncated" if "Premature end of JPEG" in warning else "corrupt"
    raise CorruptImage(f"{kind} JPEG: {warning}")


def _kept(data: bytes, load: Callable[..., Pixels], *, rgb: bool) -> Pixels:
    try:
        pixels = load(data, strict=False)
    except ValueError as error:
        raise CorruptImage(f"corrupt JPEG: {error}") from None
    if rgb:
        pixels = pixels[:, :, 2::-1]
    if (pixels != _FILLED).any(axis=2).mean() < _LEAST_SHARE:
        raise CorruptImage("truncated JPEG: hardly a pixel of it decodes")
    return pixels


def _warning(load: Callable[..., Pixels], data: bytes) -> str:
    try:
        load(data, strict=True)
    except ValueError as error:
        return str(error)
    return ""


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
    """Compare the scans of a JPEG with its frame: ``scans_missing`` where it could be finer.

    One that ends early is left to libjpeg, which says so.

    Raises:
        ImageTooLarge: more scans than encoders write, over so many pixels.
        CorruptImage: a component has no scan, or none that begins with its mean.
    """
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
            scan = Scan(scan.components, 0, 63, 0, 0)  # whatever it says: decoders ignore it
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
            if marker == _END:
                yield None
                return
            length = int.from_bytes(data[start - 2 : start], "big")
            position = start - 2 + max(length, 2)
