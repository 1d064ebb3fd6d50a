"""Every public name of both packages has its description on a page that Sphinx makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dataprep
import iobench

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("api-*.md"))
DIRECTIVE = re.compile(r"^\.\. auto(?:function|class|exception):: (\w+)\.(\w+)$", re.M)
DESCRIBED = [name for page in PAGES for name in DIRECTIVE.findall(page.read_text())]


@pytest.mark.parametrize("package", [dataprep, iobench], ids=lambda package: package.__name__)
def test_every_public_name_is_described_once(package: object) -> None:
    """An exported name that is on no page, or on two pages, is a mistake."""
    package_name = package.__name__  # type: ignore[attr-defined]
    described = sorted(name for owner, name in DESCRIBED if owner == package_name)
    public = package.__all__  # type: ignore[attr-defined]
    assert described == sorted(name for name in public if not name.startswith("__"))


def test_each_page_begins_with_a_reader_and_has_an_example() -> None:
    """Each page begins with its readers, has an example, and is in the contents of the site."""
    contents = (DOCS / "index.md").read_text().splitlines()
    for page in PAGES:
        text = page.read_text()
        assert "This page is for people who" in text
        assert "```python\n" in text
        assert page.stem in contents
