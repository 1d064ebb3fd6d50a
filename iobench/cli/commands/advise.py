"""``iobench advise``: the changes that a saved run recommends."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iobench.cli.commands.options import Json, RunFolder


def advise(
    run_dir: RunFolder,
    emit_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a config for dataprep shard."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Name of the training loop. (default: the loop of the verdict)"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recommend changes, with the predicted gain of each.

    --emit-config writes a config for dataprep shard and prints how to measure again.
    """
    from iobench.cli.advice_output import advise_saved
    from iobench.results.result import errors_naming

    with errors_naming(run_dir):
        advice = advise_saved(run_dir, group)
        answer = advice.json if as_json else advice.text
        next_commands = ""
        if emit_config is not None:
            next_commands = advice.write_config(emit_config)
    typer.echo(answer)
    if next_commands:
        typer.echo(next_commands, err=as_json)
