"""``dataprep shard``: convert images to shards, all of them or one part."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dataprep.cli.options import OTHER, RUNNING, Json, takes_job


@takes_job
def shard(
    config: Any,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite/--resume",
            help="Remove the split and start again, or continue an earlier run.",
        ),
    ] = False,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed",
            help="Write the shards again in which a photo failed.",
            rich_help_panel=RUNNING,
        ),
    ] = False,
    takeover: Annotated[
        bool,
        typer.Option(
            "--takeover",
            help="Take the lock from another run of this output, without waiting.",
            rich_help_panel=RUNNING,
        ),
    ] = False,
    part: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Do part I of N, with I from 0, or auto. Run finalize after all parts.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    print_config: Annotated[
        bool,
        typer.Option(
            "--print-config",
            help="Print the config with all defaults as YAML.",
            rich_help_panel=OTHER,
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Convert images to shards. Run the same command again to resume."""
    from dataprep.cli.output import Terminal, show_splits
    from dataprep.config.shard_config import dump
    from dataprep.errors import ConfigError
    from dataprep.job.parts import Part
    from dataprep.job.run import run_parts, run_splits

    if print_config:
        typer.echo(dump(config), nl=False)
        return
    if overwrite and retry_failed:
        raise ConfigError("--overwrite and --retry-failed exclude each other: give one")
    if part is None:
        show_splits(run_splits(config, overwrite, retry_failed, takeover, Terminal()), as_json)
        return
    if overwrite or retry_failed:
        raise ConfigError(
            "--part excludes --overwrite and --retry-failed: use another --output, or run "
            "--retry-failed without --part"
        )
    show_splits(run_parts(config, Part.parse(part), takeover, Terminal()), as_json)
