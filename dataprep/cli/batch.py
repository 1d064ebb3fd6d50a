"""``dataprep batch``: submit a job in parts to AWS Batch, and show its state."""

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
    config: Annotated[
        str, typer.Argument(metavar="CONFIG", help="The config: a YAML file or s3:// address.")
    ],
    queue: Annotated[str, typer.Option(metavar="QUEUE", help="The job queue of AWS Batch.")],
    definition: Annotated[
        str, typer.Option(metavar="NAME", help="The job definition of AWS Batch.")
    ],
    children: Annotated[
        int,
        typer.Option(metavar="N", help="Number of parts, 2 to 10,000. Each part is one child job."),
    ],
    as_json: Json = False,
) -> None:
    """Submit child jobs that write the shards, and a job that finalizes the splits."""
    from dataprep.cli.output import show
    from dataprep.job.aws_batch import submit as submit_job

    array_job, finalize_job = submit_job(
        config, queue=queue, definition=definition, children=children
    )
    if as_json:
        show(json.dumps({"array_job": array_job, "finalize_job": finalize_job}))
        return
    show(f"{children} children: {array_job}")
    show(f"then finalize: {finalize_job}")
    show(f"Follow both jobs with: dataprep batch status {finalize_job} --wait")


@batch.command(cls=GroupedCommand)
def status(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The id of either of the two jobs.")],
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the job ends, and exit with its code.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show how many child jobs are in each state, and why some failed."""
    from dataprep.cli.output import Terminal, show
    from dataprep.job.aws_batch import Status
    from dataprep.job.aws_batch import status as job_status
    from dataprep.job.aws_batch import wait as wait_for_end

    latest_status = job_status(job)
    if wait:
        terminal = Terminal()

        def note_change(changed_status: Status) -> None:
            terminal.note(str(changed_status).partition("\n")[0])

        latest_status = wait_for_end(job, note_change)
    show(json.dumps(asdict(latest_status)) if as_json else str(latest_status))
    raise typer.Exit(latest_status.exit_code)
