"""PURE. What a page is made of: frozen, and free of HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from iobench.report.model.drawings import Drawing

Tone = Literal["plain", "good", "caution", "alert"]


@dataclass(frozen=True, slots=True)
class Badge:
    """A few words that qualify a figure."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, large. ``meaning`` is its definition in a line."""

    name: str
    value: str
    interval: str
    meaning: str
    badges: tuple[Badge, ...] = ()
    leading: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A table's cell. ``raw`` is what copying gives where it is not the text.

    ``note`` stands below, small, and is not copied.
    """

    text: str
    raw: str | None = None
    is_number: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """``folded`` tables open on a click."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """A line of a legend. ``mark`` is a character in the colour of what it explains."""

    name: str
    mark: str
    colour: int | None


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing with its words. ``wide`` takes the page's whole width."""

    title: str
    drawing: Drawing
    keys: tuple[Key, ...] = ()
    note: str = ""
    badges: tuple[Badge, ...] = ()
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """Paragraphs, or a list where ``listed``."""

    lines: tuple[str, ...]
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """Preformatted text."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A term, what it means, and who says so. ``note`` stands below, small."""

    term: str
    meaning: str
    source: str = ""
    badges: tuple[Badge, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Definitions:
    """A list of terms."""

    entries: tuple[Definition, ...]


Block: TypeAlias = Words | Chart | Table | Code | Definitions


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page under one heading. ``id`` is its anchor."""

    id: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The finding that stands on the first screen: what it says, on what evidence, what next.

    ``sure``: what qualifies the evidence.
    """

    label: str
    badge: Badge
    title: str
    evidence: str
    sure: str
    threshold: str
    advice: str


@dataclass(frozen=True, slots=True)
class Report:
    """All that a page says. ``raw`` names the file that its embedded data are offered as."""

    name: str
    facts: tuple[str, ...]
    verdict: str
    badges: tuple[Badge, ...]
    figures: tuple[Figure, ...]
    sections: tuple[Section, ...] = field(default=())
    kind: str = "report"
    raw: str = "result.json"
    beginning: Beginning | None = None

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts, in the page's order."""
        return tuple(
            block
            for section in self.sections
            for block in section.blocks
            if isinstance(block, Chart)
        )
