"""Looks for known vulnerabilities in the versions that the tests use: ``python -m tests.audit``.

It is part of ``make check``. pip-audit asks PyPI's advisory database. If the database cannot be
reached, as from a machine with access to a mirror only, the report says that nothing was audited,
and the check continues.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[1] / "constraints"
FILES = ("bare.txt", "frameworks.txt")
ACCEPTED: dict[str, str] = {}
"""Advisories that do not concern us, each with the reason."""


@dataclass(frozen=True)
class Advice:
    """A package version with a known vulnerability, and the versions that fix it."""

    package: str
    identifier: str
    fixed_in: Sequence[str]

    def __str__(self) -> str:
        """A line that says what to do."""
        to = f"take {' or '.join(self.fixed_in)}" if self.fixed_in else "there is no newer version"
        return f"{self.package}: {self.identifier}: {to}"


@dataclass(frozen=True)
class Audited:
    """The answer of the database about some packages.

    Attributes:
        known_packages: the number of packages that the database has.
        unknown: packages that it does not have, or does not return to us.
        advisories: advisories that are not among the accepted ones.
    """

    known_packages: int
    unknown: Sequence[str]
    advisories: Sequence[Advice]

    def lines(self) -> list[str]:
        """The lines for a reader."""
        if not self.known_packages:
            return ["audit: no advisory database could be asked: nothing was audited"]
        missing = f", not audited: {', '.join(self.unknown)}" if self.unknown else ""
        count = len(self.advisories)
        head = f"audit: {self.known_packages} packages, {count} with advisories{missing}"
        return [head, *map(str, self.advisories)]


def audited(report: Mapping[str, object]) -> Audited:
    """Read pip-audit's JSON (its format ``json``)."""
    checked, unknown, advisories = 0, [], []
    dependencies = report["dependencies"]
    assert isinstance(dependencies, list)
    for package in dependencies:
        if "skip_reason" in package:
            unknown.append(package["name"])
            continue
        checked += 1
        named = f"{package['name']} {package['version']}"
        for advisory in package["vulns"]:
            identifiers = {advisory["id"], *advisory["aliases"]}
            if ACCEPTED.keys().isdisjoint(identifiers):
                fixed_in = tuple(advisory["fix_versions"])
                advisories.append(Advice(named, advisory["id"], fixed_in))
    return Audited(checked, unknown, advisories)


def ask_pip_audit(files: Iterable[Path]) -> Audited:
    """Ask about every version in the files. If the database is out of reach, nothing is known."""
    named = [part for path in files for part in ("-r", str(path))]
    quiet = ("--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json")
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", *named, *quiet],
        capture_output=True,
        check=False,
    )
    try:
        return audited(json.loads(done.stdout))
    except ValueError:
        return Audited(0, (), ())


def main() -> int:
    """Return 1 if a vulnerability is known."""
    results = [ask_pip_audit([CONSTRAINTS / name]) for name in FILES]
    for name, result in zip(FILES, results, strict=True):
        print(f"constraints/{name}:", *result.lines(), sep="\n  ")  # noqa: T201
    return int(any(result.advisories for result in results))


if __name__ == "__main__":
    sys.exit(main())
