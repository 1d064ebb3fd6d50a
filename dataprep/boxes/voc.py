"""PURE. One XML file of boxes, as ILSVRC and Pascal VOC write them.

``<annotation><size><width/><height/></size><object><name/><bndbox><xmin/>…</bndbox></object>…``.
The image's name is that of the file: ``<filename>`` is ``%s`` in some of ILSVRC's. Parsed by
defusedxml, which refuses entities and external references, with document types refused too.
"""

from __future__ import annotations

import math
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

LARGEST_BYTES = 2**20
_LARGEST_SIDE_PIXELS = 2**24  # what float32 tells apart


class Drawn(NamedTuple):
    """Boxes in pixels of an image of ``width`` x ``height``, 0 where the file does not say."""

    width: int
    height: int
    sides: tuple[tuple[float, float, float, float], ...]
    names: tuple[str, ...]


def parse_voc(data: bytes) -> Drawn:
    """What one file holds.

    A name space is read over. Boxes of an object's parts (a person's head) are not its own.

    Raises:
        ValueError: not XML, hostile, too large, no annotation, or without the numbers that make a
            box.
    """
    if len(data) > LARGEST_BYTES:
        raise ValueError(f"{len(data):,} bytes are no annotation")
    try:
        root = fromstring(data, forbid_dtd=True)
    except DefusedXmlException as error:
        raise ValueError(f"hostile XML: {type(error).__name__}") from None
    except (ParseError, LookupError, ValueError, RecursionError) as error:
        raise ValueError(f"not XML: {error}") from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    if root.tag != "annotation":
        raise ValueError(f"<{root.tag[:40]}> is no annotation")
    sides, names = [], []
    for drawn in root.iter("object"):
        for box in drawn.findall("bndbox"):
            left, top, right, bottom = (
                _number(box, key) for key in ("xmin", "ymin", "xmax", "ymax")
            )
            sides.append((left, top, right, bottom))
            names.append((drawn.findtext("name") or "").strip())
    width, height = (_pixels(root, f"size/{key}") for key in ("width", "height"))
    if not (width and height):
        width = height = 0
    return Drawn(width, height, tuple(sides), tuple(names))


def _number(element: Element, key: str) -> float:
    text = (element.findtext(key) or "").strip()
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) < _LARGEST_SIDE_PIXELS:
        raise ValueError(f"<{key}> is {text[:40]!r}, not a number of pixels")
    return value


def _pixels(root: Element, key: str) -> int:
    """A side of the image; 0 where it is not given."""
    if not (root.findtext(key) or "").strip():
        return 0
    value = _number(root, key)
    if value < 0 or not value.is_integer():
        raise ValueError(f"<{key}> is {value:g}, not a number of pixels")
    return int(value)
