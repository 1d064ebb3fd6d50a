"""PURE. Which entries of a source are left out by their paths: ``exclude`` of a job.

A glob without a slash matches a file or folder of that name at any depth, and with a folder all
that is below it. A glob with a slash begins at the source; ``**`` matches any number of folders.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dataprep.sources.classes import CLUTTER, is_clutter
from dataprep.sources.protocol import Listing, Problem

EXCLUDED = "excluded by "
"""Begins the reason of an entry that a glob leaves out."""


@dataclass(frozen=True)
class Exclusion:
    """The globs of a job."""

    globs: tuple[str, ...] = ()

    def reason(self, path: str) -> str:
        """Why the file or folder at ``path`` is left out, by its name alone; else empty."""
        if is_clutter(path):
            return CLUTTER
        return self.by_glob(path)

    def reasons(self, paths: Sequence[str]) -> dict[int, str]:
        """Which rows of ``paths`` are left out, and why."""
        reasons = {row: CLUTTER for row, path in enumerate(paths) if is_clutter(path)}
        if self.globs:
            matched = {row: self.by_glob(path) for row, path in enumerate(paths)}
            reasons = {row: reason for row, reason in matched.items() if reason} | reasons
        return reasons

    def by_glob(self, path: str) -> str:
        """Which glob leaves ``path`` out, as a reason; empty if none does."""
        if not self.globs or not self._any.search(path):
            return ""
        patterns = zip(self.globs, self._patterns, strict=True)
        return next(f"{EXCLUDED}{glob!r}" for glob, pattern in patterns if re.search(pattern, path))

    def applied(self, listing: Listing) -> Listing:
        """The listing with the rows that a glob leaves out as skipped ones without a class."""
        if not self.globs:
            return listing
        reasons = {row: self.by_glob(name) for row, name in enumerate(listing.names)}
        rows = {row: Problem("skipped", reason) for row, reason in reasons.items() if reason}
        if not rows:
            return listing
        classes = ["" if row in rows else name for row, name in enumerate(listing.classes)]
        return replace(listing, classes=classes, problems={**listing.problems, **rows})

    def unmatched(self, listing: Listing) -> Sequence[str]:
        """The globs that match no entry of ``listing``, no file beside and no unread folder."""
        paths = (*listing.names, *listing.unread, *listing.left_out)
        patterns = zip(self.globs, map(re.compile, self._patterns), strict=True)
        return [glob for glob, pattern in patterns if not any(map(pattern.search, paths))]

    @cached_property
    def _patterns(self) -> Sequence[str]:
        return [_pattern(glob) for glob in self.globs]

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile("|".join(self._patterns))


def check_glob(glob: str) -> None:
    """Raise ValueError if ``glob`` can match no file, or is no glob."""
    try:
        re.compile(_pattern(glob))
    except re.error:
        raise ValueError(
            f"{glob!r} is no glob: a range in brackets is in the wrong order"
        ) from None
    if not glob.strip("/."):
        raise ValueError(f"{glob!r} names nothing: give a name such as @thumbs, or a path")


def _pattern(glob: str) -> str:
    """A regular expression that finds ``glob`` in a path, at the path's end or before a slash."""
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    anchored = "/" in glob.rstrip("/")
    pieces = []
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if part == "**":
            pieces.append("[^/]+" if is_last else "(?:[^/]+/)*")
        else:
            pieces.append(_part_pattern(part) + ("" if is_last else "/"))
    begin = r"\A/?" if anchored else r"(?:\A|/)"
    return rf"(?s:{begin}{''.join(pieces)}(?:/|\Z))"


def _part_pattern(part: str) -> str:
    """A regular expression for one name: ``*``, ``?`` and ``[...]`` as in a shell."""
    pieces, at = [], 0
    while at < len(part):
        character = part[at]
        end = part.find("]", at + 2) if character == "[" else -1
        if end > 0:
            members = part[at + 1 : end].replace("\\", r"\\").replace("[", r"\[")
            negated = members.startswith(("!", "^"))
            pieces.append(f"[^/{members[1:]}]" if negated else f"[{members}]")
            at = end
        elif character == "*":
            pieces.append("[^/]*")
        elif character == "?":
            pieces.append("[^/]")
        else:
            pieces.append(re.escape(character))
        at += 1
    return "".join(pieces)
