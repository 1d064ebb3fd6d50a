"""A page has bounds, and says where it has met them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iobench.report.model.bounds import ALL_ROWS, FEWEST_ROWS, MOST_CHARTS, MOST_ROWS, bounded
from iobench.report.model.drawings import Curves
from iobench.report.model.shapes import Block, Chart, Entry, Section, Table, Words


def table(rows: int, title: str = "t") -> Table:
    """So many rows."""
    return Table(title, ("n",), tuple((Entry(str(number)),) for number in range(rows)))


def chart(number: int) -> Chart:
    """An empty one."""
    return Chart(str(number), Curves("x", "y", ()), (), "")


def shown(*blocks: Block) -> tuple[Block, ...]:
    """The blocks of one section, bounded."""
    (section,) = bounded([Section("s", "S", blocks)])
    return section.blocks


def test_what_fits_is_left_alone() -> None:
    """Nothing is said where nothing is left out."""
    blocks: tuple[Block, ...] = (table(MOST_ROWS), *map(chart, range(MOST_CHARTS)), Words(("w",)))
    assert shown(*blocks) == blocks


def test_a_long_table_says_how_long_it_is() -> None:
    """Its first rows stay, in their order."""
    (cut,) = shown(table(5_000, "Disks"))
    assert isinstance(cut, Table)
    assert cut.title == "Disks: the first 1,300 of 5,000 rows; the raw result has all"
    assert cut.rows == table(MOST_ROWS).rows


def test_charts_beyond_the_bound_are_counted() -> None:
    """The first ones are drawn, and other blocks stay where they are."""
    blocks = shown(*map(chart, range(MOST_CHARTS + 3)), table(2))
    assert [block.title for block in blocks if isinstance(block, Chart)] == [
        str(number) for number in range(MOST_CHARTS)
    ]
    assert blocks[-1] == Words(
        ("3 more charts of this kind are not drawn; the raw result has all.",)
    )


@given(st.lists(st.lists(st.integers(0, 2_000), max_size=6), max_size=6))
def test_all_rows_together_have_a_bound(sizes: list[list[int]]) -> None:
    """And no table is cut below a hundred rows."""
    sections = [Section(str(n), "", tuple(map(table, rows))) for n, rows in enumerate(sizes)]
    kept = [[len(block.rows) for block in section.blocks] for section in bounded(sections)]  # type: ignore[union-attr]
    before = [size for rows in sizes for size in rows]
    after = [size for rows in kept for size in rows]
    assert all(new >= min(old, FEWEST_ROWS) for old, new in zip(before, after, strict=True))
    assert sum(after) <= ALL_ROWS + FEWEST_ROWS * len(after)
