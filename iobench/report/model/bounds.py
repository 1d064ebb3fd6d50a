"""PURE. What a page shows at most: a run of thousands of trials is a page that opens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from iobench.report.model.shapes import Block, Chart, Section, Table, Words

ALL_ROWS = 3_000
"""Of all tables together, as long as each keeps ``FEWEST_ROWS``."""

MOST_ROWS, FEWEST_ROWS = 1_300, 100
MOST_CHARTS = 16


def bounded(sections: Iterable[Section]) -> Iterator[Section]:
    """Each with its first charts, and its longest tables cut; what is left out is said."""
    left = ALL_ROWS
    for section in sections:
        blocks: list[Block] = []
        for block in _some_charts(section.blocks):
            if isinstance(block, Table):
                block = _cut(block, max(FEWEST_ROWS, min(MOST_ROWS, left)))
                left -= len(block.rows)
            blocks.append(block)
        yield replace(section, blocks=tuple(blocks))


def _some_charts(blocks: Iterable[Block]) -> Iterator[Block]:
    charts = 0
    for block in blocks:
        charts += isinstance(block, Chart)
        if charts <= MOST_CHARTS or not isinstance(block, Chart):
            yield block
    if charts > MOST_CHARTS:
        more = charts - MOST_CHARTS
        yield Words((f"{more} more charts of this kind are not drawn; the raw result has all.",))


def _cut(table: Table, most: int) -> Table:
    if len(table.rows) <= most:
        return table
    said = f"the first {most:,} of {len(table.rows):,} rows; the raw result has all"
    return replace(table, title=f"{table.title}: {said}", rows=table.rows[:most])
