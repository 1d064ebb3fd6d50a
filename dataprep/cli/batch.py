"""``dataprep batch``: jobs in parts on AWS Batch."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from dataprep.cli.options import Json
from dataprep.cli.program import GroupedCommand

batch = typer.Typer(
    name="batch",
    help="Run a job in parts on AWS Batch.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@batch.command(cls=GroupedCommand)
def submit(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="A YAML file, also on S3.")],
    queue: Annotated[str, typer.Option(metavar="QUEUE", help="The job queue.")],
    definition: Annotated[str, typer.Option(metavar="NAME", help="The job definition.")],
    children: Annotated[int, typer.Option(metavar="N", help="Parts, each a child: 2 to 10,000.")],
    as_json: Json = False,
) -> None:
    """Submit children that make the shards, and a job that finalizes them."""
    from dataprep.batch import submit as run
    from dataprep.cli.output import show

    array, finalizing = run(config, queue=queue, definition=definition, children=children)
    if as_json:
        show(json.dumps({"array_job": array, "finalize_job": finalizing}))
        return
    show(f"{children} children: {array}")
    show(f"then finalize: {finalizing}")
    show(f"Follow both with: dataprep batch status {finalizing} --wait")


@batch.command(cls=GroupedCommand)
def status(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The id of either job.")],
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for its end; exit with the job's code.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the children by state, and why some failed."""
    from dataprep.batch import status as now
    from dataprep.batch import wait as until
    from dataprep.cli.output import Terminal, show

    found = now(job)
    if wait:
        terminal = Terminal()
        found = until(job, lambda seen: terminal.note(str(seen).partition("\n")[0]))
    show(json.dumps(asdict(found)) if as_json else str(found))
    raise typer.Exit(found.exit_code)
