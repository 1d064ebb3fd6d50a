"""Draw a contact sheet: the images of some records in a grid, each with a caption."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageOps

from dataprep.checking.record_views import format_labels, record_line
from dataprep.checking.result import Inspection
from dataprep.checking.split_records import SplitRecords, faults_of, read_evenly_spaced
from dataprep.errors import ConfigError, ImageError
from dataprep.formats.shard_reader import Record, ShardReader
from dataprep.image.rgb import decode_rgb
from dataprep.message_text import counted

# A contact sheet is a grid of cells. A cell has an image and a caption below it. Sizes in pixels.
_CELL_WIDTH = 188
_CELL_HEIGHT = 222
_IMAGE_SIDE = 176
_MARGIN = 6
_FONT_SIZE = 13


def write_contact_sheet(records: SplitRecords | ShardReader, path: Path, images: int) -> Inspection:
    """Draw evenly spaced records in a grid, and write it to a file.

    Args:
        records: the records of a split or of a shard.
        path: the file, ``.png`` or ``.jpg``.
        images: the maximum number of images.

    Returns:
        A line about the picture, and the damage of the drawn records.

    Raises:
        ConfigError: the name of the file has another extension, or there are no records.
        OSError: the file cannot be written.
    """
    if path.suffix.lower() not in (".png", ".jpg", ".jpeg"):
        raise ConfigError(f"--contact-sheet {path}: give a name that ends in .png or .jpg")
    total = records.count()
    if not total:
        raise ConfigError(f"--contact-sheet: {records.uri} has no records. {records.fault or ''}")
    drawn_records = read_evenly_spaced(records, images)
    _draw_sheet(drawn_records).save(path, quality=90)
    faults = faults_of(drawn_records)
    if records.fault:
        faults.append(str(records.fault))
    numbers = [record.number if record.sample < 0 else record.sample for record in drawn_records]
    content = {"contact_sheet": str(path), "records": numbers, "of": total, "faults": faults}
    line = f"{path}: {len(drawn_records):,} of {counted(total, 'record')} of {records.uri}"
    return Inspection.of_file(line, content, faults)


def _draw_sheet(records: Sequence[Record]) -> Image.Image:
    """Draw records in a grid, with about four columns for every three rows."""
    columns = math.ceil(math.sqrt(len(records) * 4 / 3))
    rows = math.ceil(len(records) / columns)
    sheet = Image.new("RGB", (columns * _CELL_WIDTH, rows * _CELL_HEIGHT), "white")
    for index, record in enumerate(records):
        row, column = divmod(index, columns)
        sheet.paste(_draw_cell(record), (column * _CELL_WIDTH, row * _CELL_HEIGHT))
    return sheet


def _draw_cell(record: Record) -> Image.Image:
    """Draw an image with its label, its class and the name of its file.

    If the record has a row in the table of samples, the label counts from 0. Otherwise, the label
    is shown as it is stored.
    """
    # Each cell is a separate image, so that long captions are cut off at its edge.
    cell = Image.new("RGB", (_CELL_WIDTH, _CELL_HEIGHT), "white")
    draw = ImageDraw.Draw(cell)
    try:
        image = Image.fromarray(decode_rgb(record.image))
        square = ImageOps.pad(image, (_IMAGE_SIDE, _IMAGE_SIDE), color="white")
        cell.paste(square, (_MARGIN, _MARGIN))
    except ImageError as error:
        problem = textwrap.fill(record.damage or str(error), 24)
        draw.text((_MARGIN, _MARGIN), problem, "red", font_size=_FONT_SIZE)
    line = record_line(record)
    values = {
        "label": format_labels(line["labels"]),
        "synset": line["synset"],
        "source": line["filename"],
        **record.row,  # replaces these values, if the record has a row
    }
    file_name = values["source"].rpartition("/")[2]
    caption = f"{values['label']}  {values['synset']}\n{file_name}"
    draw.text((_MARGIN, _IMAGE_SIDE + 2 * _MARGIN), caption, "black", font_size=_FONT_SIZE)
    return cell
