"""Saved runs into a comparison: read, compared, said."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dataprep.config import parse_share
from dataprep.errors import ConfigError
from iobench.compare import Comparison, Saved, Trend, compare, trend
from iobench.compare.exported import comparison_object, trend_object
from iobench.compare.text import comparison_text, trend_text
from iobench.result import RESULT, Result, read_result
from iobench.rundir import read


@dataclass(frozen=True, slots=True)
class Compared:
    """Two runs, or several. ``exit_code``: 1 on a regression."""

    found: Comparison | Trend

    @property
    def exit_code(self) -> int:
        """What the command line ends with."""
        return self.found.exit_code

    @property
    def text(self) -> str:
        """For a terminal."""
        found = self.found
        return comparison_text(found) if isinstance(found, Comparison) else trend_text(found)

    @property
    def json(self) -> str:
        """One object."""
        return json.dumps(self._object(), allow_nan=False)

    def write_page(self, path: Path) -> None:
        """As one HTML file.

        Raises:
            ConfigError: it is not called so, or cannot be written.
        """
        from iobench.compare.page import comparison_page, trend_page
        from iobench.report import render_page

        page_name(path)
        found = self.found
        model = comparison_page(found) if isinstance(found, Comparison) else trend_page(found)
        partial = path.with_name(f"{path.name}.partial")
        try:
            partial.write_bytes(render_page(model, self._object()))
            partial.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise ConfigError(f"cannot write {path}: {error.strerror}") from None

    def _object(self) -> dict[str, object]:
        found = self.found
        return comparison_object(found) if isinstance(found, Comparison) else trend_object(found)


def compare_saved(
    runs: Sequence[Path], against: Path | None, threshold: float, *, force: bool = False
) -> Compared:
    """Saved runs, the first of which is the base unless ``against`` names another.

    Raises:
        ConfigError: nothing to compare with.
        ResultError, SchemaTooNew: a run cannot be read.
        NotComparable: they have nothing in common, or are of unlike machines.
    """
    paths = [against, *runs] if against else list(runs)
    if len(paths) < 2:
        raise ConfigError("compare takes two runs: BASE_DIR NEW_DIR, or NEW_DIR --against BASELINE")
    base, *others = (Saved(label(path), read_saved(path)) for path in paths)
    if len(others) == 1:
        return Compared(compare(base, others[0], threshold, force=force))
    return Compared(trend(base, others, threshold, force=force))


def read_saved(path: Path) -> Result:
    """The result of a run's folder, or of a file that was ``result.json`` in one.

    Raises:
        ResultError: there is none.
        SchemaTooNew: written by a newer version.
    """
    return read_result(path, path) if path.is_file() else read(path)


def threshold_share(text: str) -> float:
    """``5%`` as 0.05.

    Raises:
        ConfigError: no share above 0 and below 1.
    """
    try:
        share = float(parse_share(text))
    except ValueError as error:
        raise ConfigError(f"--threshold: {error}") from None
    if not 0 < share < 1:
        raise ConfigError(f"--threshold {text}: give more than 0% and less than 100%")
    return share


def page_name(path: Path) -> None:
    """Refuse a name of something else: a page is written over what was there.

    Raises:
        ConfigError: it does not end in .html.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--html {path}: give a file that ends in .html")


def label(path: Path) -> str:
    """What people call it: a run's folder, or the name of a file; no path of this machine."""
    named = Path(os.path.abspath(path))  # noqa: PTH100  a link keeps the name that it was given
    return named.parent.name if named.name == RESULT else named.name
