"""Dependencies have lower and upper bounds, and an audit reports what it has examined."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.audit import Audited, audited

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
BY_DATE = frozenset({"dask", "distributed", "pillow", "torch", "nvidia-ml-py"})
"""Packages whose first number does not mark incompatible versions, such as a year."""
TOOLS = frozenset({"check", "docs", "test", "demo"})
EXTRAS = PROJECT["optional-dependencies"]
OPTIONAL = [line for extra, lines in EXTRAS.items() if extra not in TOOLS for line in lines]
OF_OTHERS = [line for line in OPTIONAL if not line.startswith(PROJECT["name"])]
NEEDED = [*PROJECT["dependencies"], *OF_OTHERS]


@pytest.mark.parametrize("line", NEEDED)
def test_every_dependency_has_a_floor_and_an_upper_major(line: str) -> None:
    """Each dependency has a lower bound, and an upper bound for its next incompatible version."""
    requirement = line.partition(";")[0].strip()
    name = requirement.partition(">")[0].partition("=")[0].partition("<")[0]
    assert ">=" in requirement or "==" in requirement
    if name not in BY_DATE | {"tensorflow-cpu", "pyarrow"} and "==" not in requirement:
        assert ",<" in requirement


@pytest.mark.parametrize("line", [line for extra in sorted(TOOLS) for line in EXTRAS[extra]])
def test_every_tool_has_a_floor(line: str) -> None:
    """Each tool has a lower bound. Constraints files have the exact versions of the checks."""
    assert line.startswith(PROJECT["name"]) or ">=" in line


def package(name: str, *vulns: dict[str, Any]) -> dict[str, Any]:
    """A package in the form of pip-audit's report."""
    return {"name": name, "version": "1.0", "vulns": list(vulns)}


ADVISORY = {"id": "PYSEC-1", "fix_versions": ["1.1"], "aliases": ["CVE-1"], "description": "bad"}


class TestAudit:
    def test_an_advisory_is_told_with_its_remedy(self) -> None:
        """Each advisory is reported with the version that fixes it, if there is one."""
        report: dict[str, Any] = {
            "dependencies": [package("a"), package("b", ADVISORY)],
            "fixes": [],
        }
        assert audited(report).lines() == [
            "audit: 2 packages, 1 with advisories",
            "b 1.0: PYSEC-1: take 1.1",
        ]
        hopeless: dict[str, Any] = {
            "dependencies": [package("b", {**ADVISORY, "fix_versions": []})]
        }
        assert audited(hopeless).lines()[1] == "b 1.0: PYSEC-1: there is no newer version"

    def test_what_is_accepted_is_known_by_any_of_its_names(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An accepted advisory is recognised by each of its identifiers."""
        monkeypatch.setattr("tests.audit.ACCEPTED", {"CVE-1": "never called"})
        assert audited({"dependencies": [package("b", ADVISORY)]}).advisories == []

    def test_what_was_not_audited_is_named(self) -> None:
        """Packages that the database did not audit are named. A mirror has no advisories."""
        unknown = {"name": "c", "skip_reason": "Dependency not found on PyPI"}
        some = audited({"dependencies": [package("a"), unknown]})
        assert some.lines() == ["audit: 1 packages, 0 with advisories, not audited: c"]
        none = audited({"dependencies": [unknown]})
        assert "nothing was audited" in none.lines()[0]
        assert "nothing was audited" in Audited(0, (), ()).lines()[0]
