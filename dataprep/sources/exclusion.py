"""PURE. Leave out entries of a source by their paths (the setting ``exclude`` of a job).

A glob without a slash matches a file or folder of that name at any depth. If it matches a folder,
everything in the folder is left out. A glob with a slash begins at the root of the source. In it,
``**`` matches any number of folders.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dataprep.sources.file_names import CLUTTER, is_clutter
from dataprep.sources.protocol import Listing, Problem

EXCLUDED = "excluded by "
"""The beginning of the reason of an entry that a glob leaves out."""


@dataclass(frozen=True)
class Exclusion:
    """The globs of a job.

    Attributes:
        globs: the globs, in the order of the setting.
    """

    globs: tuple[str, ...] = ()

    def reason(self, path: str) -> str:
        """Why the file or folder at ``path`` is left out; empty if it is not left out."""
        if is_clutter(path):
            return CLUTTER
        return self.by_glob(path)

    def reasons(self, paths: Sequence[str]) -> dict[int, str]:
        """The reason why paths are left out, by the index of the path. Other paths are missing."""
        reasons = {}
        for index, path in enumerate(paths):
            # Call ``by_glob`` only if there are globs, because there may be millions of paths.
            reason = self.by_glob(path) if self.globs else ""
            if is_clutter(path):
                reason = CLUTTER
            if reason:
                reasons[index] = reason
        return reasons

    def by_glob(self, path: str) -> str:
        """The reason why a glob leaves out ``path``; empty if no glob matches."""
        if not self.globs or not self._any_glob.search(path):
            return ""
        for glob, pattern in zip(self.globs, self._patterns, strict=True):
            if pattern.search(path):
                return f"{EXCLUDED}{glob!r}"
        return ""

    def applied(self, listing: Listing) -> Listing:
        """Return the listing in which entries that match a glob are skipped and have no class."""
        if not self.globs:
            return listing
        problems = dict(listing.problems)
        classes = list(listing.classes)
        is_changed = False
        for row, name in enumerate(listing.names):
            reason = self.by_glob(name)
            if reason:
                problems[row] = Problem("skipped", reason)
                classes[row] = ""
                is_changed = True
        return replace(listing, classes=classes, problems=problems) if is_changed else listing

    def unmatched(self, listing: Listing) -> Sequence[str]:
        """The globs that match nothing: no entry, no left-out file, and no unread folder."""
        paths = (*listing.names, *listing.unread, *listing.left_out)
        unmatched = []
        for glob, pattern in zip(self.globs, self._patterns, strict=True):
            if not any(pattern.search(path) for path in paths):
                unmatched.append(glob)
        return unmatched

    @cached_property
    def _patterns(self) -> Sequence[re.Pattern[str]]:
        """One pattern for each glob."""
        return [re.compile(_glob_pattern(glob)) for glob in self.globs]

    @cached_property
    def _any_glob(self) -> re.Pattern[str]:
        """One pattern for all globs. Most paths match no glob, and need only this one search."""
        return re.compile("|".join(_glob_pattern(glob) for glob in self.globs))


def check_glob(glob: str) -> None:
    """Check that a glob can match a file.

    Raises:
        ValueError: the glob is malformed, or has nothing but slashes and dots.
    """
    try:
        re.compile(_glob_pattern(glob))
    except re.error:
        raise ValueError(
            f"{glob!r} is no glob: a range in brackets is in the wrong order"
        ) from None
    if not glob.strip("/."):
        raise ValueError(f"{glob!r} names nothing: give a name such as @thumbs, or a path")


def exclude_option(path: str) -> str:
    """The command-line option that leaves out a file or folder with this path.

    ``*``, ``?`` and ``[`` in the path are escaped, so that they match only themselves.
    """
    return f"--exclude {shlex.quote(literal_glob(path))}"


def literal_glob(path: str) -> str:
    """A glob that matches only this path."""
    return re.sub(r"([*?[])", r"[\1]", path)


def _glob_pattern(glob: str) -> str:
    """A regular expression for a glob. A match ends with a whole name of the path.

    Therefore a glob that matches a folder also matches everything in the folder.
    """
    names = [name for name in glob.split("/") if name not in ("", ".")]
    is_anchored = "/" in glob.rstrip("/")
    pieces = []
    for number, name in enumerate(names):
        is_last = number == len(names) - 1
        if name == "**":
            pieces.append("[^/]+" if is_last else "(?:[^/]+/)*")
        else:
            pieces.append(_name_pattern(name))
            if not is_last:
                pieces.append("/")
    begin = r"\A/?" if is_anchored else r"(?:\A|/)"
    return rf"(?s:{begin}{''.join(pieces)}(?:/|\Z))"


def _name_pattern(name: str) -> str:
    """A regular expression for one name. ``*``, ``?`` and ``[...]`` have the meaning of a shell."""
    pieces, position = [], 0
    while position < len(name):
        character = name[position]
        is_negated = name.startswith(("[!", "[^"), position)
        begin = position + 2 if is_negated else position + 1
        # As in a shell, a "]" at the beginning of a set is a member of the set, not its end.
        end = name.find("]", begin + 1) if character == "[" else -1
        if end > 0:
            negation = "^" if is_negated else ""
            # A set does not match a slash, even if it is negated or has a range such as "+-9".
            pieces.append(f"(?!/)[{negation}{_set_pattern(name[begin:end])}]")
            position = end
        elif character == "*":
            pieces.append("[^/]*")
        elif character == "?":
            pieces.append("[^/]")
        else:
            pieces.append(re.escape(character))
        position += 1
    return "".join(pieces)


def _set_pattern(members: str) -> str:
    """The members of a set of characters, for a regular expression.

    A hyphen at the beginning, at the end or after a range is a member. Other hyphens form ranges.
    """
    pieces, position = [], 0
    while position < len(members):
        pieces.append(re.escape(members[position]))
        position += 1
        if members[position : position + 1] == "-" and position + 1 < len(members):
            pieces.append(f"-{re.escape(members[position + 1])}")
            position += 2
    return "".join(pieces)
