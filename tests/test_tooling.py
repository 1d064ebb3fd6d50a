"""The hooks before a commit and the workflow of pull requests run what `make check` and CI run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent


def content(name: str) -> Any:
    """A YAML file of the repository."""
    return yaml.safe_load((ROOT / name).read_text())


def test_hooks_before_a_commit_are_the_formatter_and_the_linter_of_make_check() -> None:
    """The hooks run the formatter and the linter from the environment that the Makefile makes."""
    (repository,) = content(".pre-commit-config.yaml")["repos"]
    entries = [hook["entry"] for hook in repository["hooks"]]
    assert [entry.split()[:2] for entry in entries] == [
        [".venv/bin/ruff", "format"],
        [".venv/bin/ruff", "check"],
    ]
    assert all(hook["language"] == "system" for hook in repository["hooks"])
    checks = (ROOT / "Makefile").read_text()
    assert "\t.venv/bin/ruff format --check .\n" in checks
    assert "\t.venv/bin/ruff check .\n" in checks


def test_pull_requests_run_the_script_of_ci() -> None:
    """The workflow has no steps of its own, so that it finds the same faults as a local run."""
    workflow = content(".github/workflows/test.yml")
    # YAML 1.1 reads the key `on` as true.
    assert "pull_request" in workflow[True]
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    script = ROOT / ".ci/run"
    assert script.stat().st_mode & 0o111
    assert script.read_text().rstrip().endswith("exec make test")
