"""``iobench schema``: the JSON schema of a config."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON schema of a config, for editors."""
    from dataprep.config.files import editor_schema
    from iobench.config.benchmark import BenchConfig

    typer.echo(editor_schema(BenchConfig, "A benchmark config of iobench"), nl=False)
