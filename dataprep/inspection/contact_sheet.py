"""PURE. Many images on one, each with its caption."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from dataprep.errors import ConfigError, ImageError
from dataprep.image.rgb import decode_whole
from dataprep.names import escape

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
"""What a sheet can be stored as, by suffix."""

_THUMB = 176
_GAP = 12
_LINE = 17
_TITLE = 34
_PAPER, _FRAME = (255, 255, 255), (236, 236, 236)
_INK, _FAINT, _WRONG = (20, 20, 20), (110, 110, 110), (176, 0, 32)


class Picture(NamedTuple):
    """An encoded image, or None, and its caption: the first line is set off."""

    image: bytes | None
    caption: tuple[str, ...]
    problem: str = ""


def draw_sheet(pictures: Sequence[Picture], title: str) -> Image.Image:
    """All pictures in rows, about four wide for three high; captions cut to their column."""
    columns = max(1, math.ceil(math.sqrt(len(pictures) * 4 / 3)))
    rows = math.ceil(len(pictures) / columns)
    lines = max((len(picture.caption) for picture in pictures), default=0)
    cell_width, cell_height = _THUMB + _GAP, _THUMB + lines * _LINE + _GAP + 6
    size = columns * cell_width + _GAP, rows * cell_height + _TITLE + _GAP
    sheet = Image.new("RGB", size, _PAPER)
    draw = ImageDraw.Draw(sheet)
    font, bold = ImageFont.load_default(13), ImageFont.load_default(15)
    draw.text((_GAP, 9), _cut(title, bold, size[0] - 2 * _GAP), _INK, bold)
    for i, picture in enumerate(pictures):
        left = _GAP + i % columns * cell_width
        top = _TITLE + i // columns * cell_height
        _paste(sheet, draw, picture, (left, top), font)
        for number, text in enumerate(picture.caption):
            place = (left, top + _THUMB + 4 + number * _LINE)
            draw.text(place, _cut(text, font, _THUMB), _FAINT if number else _INK, font)
    return sheet


def encode_sheet(sheet: Image.Image, suffix: str) -> bytes:
    """The sheet as a file of that suffix.

    Raises:
        ConfigError: it is none of ``FORMATS``.
    """
    form = FORMATS.get(suffix.lower())
    if form is None:
        raise ConfigError(f"--contact-sheet: a name that ends in {' or '.join(FORMATS)}")
    sink = io.BytesIO()
    sheet.save(sink, form, **({"quality": 90} if form == "JPEG" else {}))
    return sink.getvalue()


def _paste(
    sheet: Image.Image,
    draw: ImageDraw.ImageDraw,
    picture: Picture,
    place: tuple[int, int],
    font: ImageFont.ImageFont | ImageFont.FreeTypeFont,
) -> None:
    left, top = place
    draw.rectangle((left, top, left + _THUMB - 1, top + _THUMB - 1), fill=_FRAME)
    problem = picture.problem
    try:
        if picture.image is not None:
            thumb = Image.fromarray(decode_whole(picture.image))
            thumb.thumbnail((_THUMB, _THUMB))
            corner = left + (_THUMB - thumb.width) // 2, top + (_THUMB - thumb.height) // 2
            sheet.paste(thumb, corner)
            return
    except ImageError as error:
        problem = str(error)
    for number, line in enumerate(_wrapped(problem or "no image", font)):
        draw.text((left + 6, top + 6 + number * _LINE), line, _WRONG, font)


def _cut(text: str, font: ImageFont.ImageFont | ImageFont.FreeTypeFont, width: int) -> str:
    """The text as far as it fits, on one line and without control characters.

    What is left out is in the middle: names of files often differ at their ends alone.
    """
    text = escape(text)
    if font.getlength(text) <= width:
        return text
    for kept in range(len(text) - 1, 0, -1):
        shorter = f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"
        if font.getlength(shorter) <= width:
            return shorter
    return "…"


def _wrapped(text: str, font: ImageFont.ImageFont | ImageFont.FreeTypeFont) -> list[str]:
    lines = [""]
    for word in escape(text).split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and font.getlength(longer) > _THUMB - 12:
            lines.append(word)
        else:
            lines[-1] = longer
    return [_cut(line, font, _THUMB - 12) for line in lines[:9]]
