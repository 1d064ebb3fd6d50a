"""What docs/compare.md says of statistics is what is computed."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from iobench.compare.figures import OF_KINDS
from iobench.two_samples import more_to_tell, ratio_apart

PAGE = (Path(__file__).parents[3] / "docs" / "compare.md").read_text()
COVERAGES = re.findall(r"\| (\d+) against (\d+) \| ([\d.]+) %", PAGE)
SCATTER = re.search(r"\| scatter `s` \|(.*)\|\n\|[- |]+\n\| repeats \|(.*)\|", PAGE)


def test_its_coverages_are_stated_ones() -> None:
    """To a tenth of a percent."""
    assert len(COVERAGES) == 5
    for base, new, said in COVERAGES:
        found = ratio_apart([1.0] * int(base), [1.0] * int(new)).coverage
        assert f"{found * 100:.1f}" == said


def test_its_repeats_are_those_that_would_be_asked_for() -> None:
    """Of two runs of four with that scatter, four and those that are lacking."""
    assert SCATTER
    shares = [float(each.strip(" %")) / 100 for each in SCATTER[1].split("|")]
    repeats = [int(each) for each in SCATTER[2].split("|")]
    assert len(shares) == 7
    for share, said in zip(shares, repeats, strict=True):
        # Of these four the deviation is 1.
        run = [math.exp(share * z) for z in (-1.1618950038622251, -0.3872983346207417)]
        run += [1 / value for value in run]
        more = more_to_tell(run, run, 0.05).repeats
        assert said == pytest.approx(4 + more, abs=1 if said <= 6 else 0)


def test_it_names_the_figures_of_every_kind() -> None:
    """A row each."""
    for kind, figures in OF_KINDS.items():
        (row,) = re.findall(rf"\| `{kind}` \|(.*)", PAGE)
        for figure in figures:
            assert figure.name in row
