"""``plan``, ``shard`` and ``finalize``: what makes shards, and what says beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataprep.command_line import told
from dataprep.commands.job_options import takes_a_job
from dataprep.commands.options import (
    EndpointUrl,
    Json,
    OneSplit,
    Output,
    StoreSettings,
    refuse,
    store_options,
)
from dataprep.errors import DataprepError, DatasetError, JobError

if TYPE_CHECKING:
    from dataprep.job import Summary


@takes_a_job
def plan(
    config: Any,
    readers: Annotated[
        int | None,
        typer.Option(min=1, help="Ranks times loader workers that will read the shards."),
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(help="A file such as configs/prices.yaml, which is an example.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what shard would make, meet, take and cost; write nothing."""
    from dataprep.job import progress
    from dataprep.job.forecast_report import forecast_json, forecast_text
    from dataprep.job.forecasting import forecast

    told = {"readers": readers, "prices": prices}
    options = {key: value for key, value in told.items() if value is not None}
    asked = config.model_copy(update={"plan": config.plan.model_copy(update=options)})
    found = forecast(asked, note=progress.choose().note)
    typer.echo(forecast_json(found) if as_json else forecast_text(found))


@takes_a_job
def shard(
    config: Any,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite/--resume",
            help="Remove this split first, and a validation split taken from it; or go on with it.",
        ),
    ] = False,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Make the shards again in which a sample failed."),
    ] = False,
    takeover: Annotated[
        bool,
        typer.Option("--takeover", help="Do not wait for another run of this output: take over."),
    ] = False,
    part: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="One machine's share, I from 0; then run finalize."),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the whole config as YAML and exit.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Resize, pack and store images as shards; run again to resume."""
    from dataprep.config import dump
    from dataprep.job import Part, progress
    from dataprep.job.report import part_text, summary_text
    from dataprep.job.run import each_part, each_split

    if print_config:
        typer.echo(dump(config), nl=False)
        return
    if part is not None:
        if overwrite:
            also = ", and the same of validation" if config.validation is not None else ""
            refuse(
                "--part goes with neither --overwrite nor --retry-failed: parts would remove each "
                "other's shards. To start anew use another --output, or first delete "
                f"{config.split}.manifest.json, then every other {config.split}.* and every "
                f"{config.split}-* in the folders of this one{also}"
            )
        if retry_failed:
            refuse(
                "--part goes with neither --overwrite nor --retry-failed: parts would undo each "
                "other's work. Run --retry-failed once, without --part: it makes only the shards "
                "in which a sample failed"
            )
        parts = each_part(config, Part.parse(part), takeover, progress.choose())
        _answer(parts, part_text, as_json)
        return
    if overwrite and retry_failed:
        refuse("--overwrite and --retry-failed exclude each other: give one")
    splits = each_split(config, overwrite, retry_failed, takeover, progress.choose())
    _answer(splits, summary_text, as_json)


def _answer(splits: Iterator[Any], text: Callable[[Sequence[Any]], str], as_json: bool) -> None:
    """Print what was made; of a job that stopped, what was made before."""
    from dataprep.errors import DataprepError
    from dataprep.job.report import stopped_json, summary_json

    made = []
    try:
        for summary in splits:
            made.append(summary)  # noqa: PERF402  those before an error are wanted too
    except DataprepError as error:
        if as_json and error.exit_code == 1:
            typer.echo(stopped_json(made, error))
        elif made:
            typer.echo(text(made))
        raise
    typer.echo(summary_json(made) if as_json else text(made))


def finalize(
    output: Output,
    split: OneSplit = None,
    parts: Annotated[
        int | None, typer.Option(min=1, help="How many parts made it, to name those that lack.")
    ] = None,
    max_failures: Annotated[
        str, typer.Option(help="Of the whole split, as for shard: a number or a share.")
    ] = "1%",
    endpoint_url: EndpointUrl = None,
    set_: StoreSettings = None,
    as_json: Json = False,
) -> None:
    """Complete what parts have made: table of samples and manifest."""
    from dataprep.dataset import splits_in
    from dataprep.job import finalize as run
    from dataprep.job import progress
    from dataprep.job.report import summary_json, summary_text
    from dataprep.stores import open_store

    _check_limit(max_failures)
    options = store_options(endpoint_url, set_)
    splits = [split] if split else splits_in(open_store(output, options))
    display = progress.choose()
    summaries: list[Summary] = []
    errors: dict[str, DataprepError] = {}
    for name in splits:
        try:
            summaries.append(
                run(
                    output,
                    name,
                    max_failures=max_failures,
                    parts=parts,
                    options=options,
                    note=display.note,
                )
            )
        except (JobError, DatasetError) as error:  # the other splits may be ready
            errors[name] = error
    if as_json:
        incomplete = {name: str(error) for name, error in errors.items()}
        typer.echo(summary_json(summaries, incomplete))
    elif summaries:
        typer.echo(summary_text(summaries))
    _complain([*errors.values()])


def _complain(errors: Sequence[DataprepError]) -> None:
    """One line each; the last is raised, with the worst exit code of them."""
    for error in errors[:-1]:
        typer.echo(f"dataprep: {told(str(error))}", err=True)
    if errors:
        errors[-1].exit_code = max(error.exit_code for error in errors)
        raise errors[-1]


def _check_limit(max_failures: str) -> None:
    from dataprep.shares import allowed_failures

    try:
        allowed_failures(max_failures, 100)
    except ValueError as error:
        refuse(f"--max-failures: {error}")
