"""Parse, call, exit code; nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from dataprep.command_line import Commands, application, one_line, start
from dataprep.job_options import EndpointUrl, more_settings, takes_a_job

if TYPE_CHECKING:
    from dataprep.stores import StoreOptions


class DataprepCommands(Commands):
    """dataprep's commands."""

    program = "dataprep"
    interrupted = "interrupted: what is stored is kept, the same command resumes"


app = application(
    DataprepCommands,
    "Image collections into resized, packed and verified TFRecord and RecordIO shards.",
)

StoreSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Store options: --set store.profile=me."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@app.command()
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
    """Say what shard would make, meet, take and cost; nothing is written."""
    from dataprep.job import progress
    from dataprep.job.forecast_report import forecast_json, forecast_text
    from dataprep.job.forecasting import forecast

    told = {"readers": readers, "prices": prices}
    options = {key: value for key, value in told.items() if value is not None}
    asked = config.model_copy(update={"plan": config.plan.model_copy(update=options)})
    found = forecast(asked, note=progress.choose().note)
    typer.echo(forecast_json(found) if as_json else forecast_text(found))


@app.command()
@takes_a_job
def shard(
    config: Any,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite/--resume", help="Remove this split first, or go on with it."),
    ] = False,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="Make the shards again in which a sample failed."),
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
    """Resize, pack and store a collection as shards; run again to resume."""
    from dataprep.config import dump
    from dataprep.job import Part, progress, shard_part
    from dataprep.job import shard as run
    from dataprep.job.report import part_text, summary_json, summary_text

    if print_config:
        typer.echo(dump(config), nl=False)
        return
    if part is not None:
        if overwrite or retry_failed:
            _refuse(
                "--part goes with neither --overwrite nor --retry-failed: parts would undo each "
                "other's work; run that once, without --part"
            )
        parts = shard_part(config, Part.parse(part), display=progress.choose())
        typer.echo(summary_json(parts) if as_json else part_text(parts))
        return
    if overwrite and retry_failed:
        _refuse("--overwrite and --retry-failed exclude each other: give one")
    display = progress.choose()
    summaries = run(config, overwrite=overwrite, retry_failed=retry_failed, display=display)
    typer.echo(summary_json(summaries) if as_json else summary_text(summaries))


@app.command()
def finalize(
    output: Annotated[str, typer.Argument(help="A path or s3://bucket/prefix.")],
    split: Annotated[str | None, typer.Option(help="One split. (default: all)")] = None,
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
    """Complete what several parts have made: the table of samples and the manifest."""
    from dataprep.job import finalize as run
    from dataprep.job import progress
    from dataprep.job.report import summary_json, summary_text
    from dataprep.stores import open_store
    from dataprep.verification.output import splits_in

    _check_limit(max_failures)
    options = _store_options(endpoint_url, set_)
    splits = [split] if split else splits_in(open_store(output, options))
    display = progress.choose()
    summaries = [
        run(
            output,
            name,
            max_failures=max_failures,
            parts=parts,
            options=options,
            note=display.note,
        )
        for name in splits
    ]
    typer.echo(summary_json(summaries) if as_json else summary_text(summaries))


@app.command()
def verify(
    output: Annotated[str, typer.Argument(help="A path or s3://bucket/prefix.")],
    split: Annotated[str | None, typer.Option(help="One split. (default: all)")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Sizes, checksums, receipts.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Decode every image as well.")] = False,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT",
            help="Report samples that are in SPLIT too. Reads two tables, and shards only with "
            "--quick or --deep.",
        ),
    ] = None,
    fail_on_leakage: Annotated[
        bool, typer.Option("--fail-on-leakage", help="End with 1 if there are any.")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="(default: one a processor)")] = None,
    endpoint_url: EndpointUrl = None,
    set_: StoreSettings = None,
    as_json: Json = False,
) -> None:
    """Re-read what was stored and name the shard, record and offset of each fault."""
    from dataprep.config import DaskOptions
    from dataprep.verification import compare
    from dataprep.verification import verify as run

    if quick and deep:
        _refuse("--quick and --deep exclude each other: give one")
    if fail_on_leakage and not against:
        _refuse("--fail-on-leakage needs --against SPLIT: the split to compare with")
    options = _store_options(endpoint_url, set_)
    leaks = compare(output, split, against, options=options) if against else ()
    found = (
        ()
        if against and not (quick or deep)
        else run(
            output,
            split,
            depth="quick" if quick else "deep" if deep else "full",
            workers=workers or DaskOptions().worker_count,
            options=options,
        )
    )
    if as_json:
        result = {"splits": [one.as_dict() for one in found]}
        if against:
            result["leakage"] = [leak.as_dict() for leak in leaks]
        typer.echo(json.dumps(result))
    else:
        _echo("\n".join(str(one) for one in (*found, *leaks)))
    if not all(one.ok for one in found) or (fail_on_leakage and any(leaks)):
        raise typer.Exit(1)


@app.command()
def inspect(
    target: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUT_OR_SHARD", help="A path or s3:// URI; a shard may be anybody's."
        ),
    ],
    split: Annotated[str | None, typer.Option(help="One split of an output.")] = None,
    format: Annotated[
        str | None, typer.Option(help="tfrecord or recordio, of an output that has both.")
    ] = None,
    record: Annotated[
        int | None, typer.Option(metavar="N", help="All that one record holds, counted from 0.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Store that record's image, byte for byte.")
    ] = None,
    contact_sheet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A picture of what is inside: .png or .jpg."),
    ] = None,
    images: Annotated[int, typer.Option(min=1, max=1000, help="How many are on it.")] = 48,
    endpoint_url: EndpointUrl = None,
    set_: StoreSettings = None,
    as_json: Json = False,
) -> None:
    """Look into a data set, a shard or a record, and read no more of it than that takes."""
    from dataprep.inspection import Wanted
    from dataprep.inspection import inspect as run

    wanted = Wanted(split, format, record, save, contact_sheet, images)
    found = run(target, wanted, _store_options(endpoint_url, set_))
    if as_json:
        typer.echo(json.dumps(found.content))
    else:
        _echo(found.text)
    if not found.ok:
        raise typer.Exit(1)


@app.command()
def sample(
    dest: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    images: Annotated[int, typer.Option(help="How many.")] = 200,
    classes: Annotated[int, typer.Option(help="In how many class folders.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed draws the same files.")] = 0,
    defects: Annotated[
        bool, typer.Option("--defects", help="Add one of each quirk and several broken files.")
    ] = False,
    layout: Annotated[
        Literal["imagefolder", "ilsvrc"],
        typer.Option(help="Class folders, or ILSVRC2012's tars and devkit as downloaded."),
    ] = "imagefolder",
) -> None:
    """Draw an ImageNet-like tree of photographs that never were."""
    from dataprep.sample import draw_ilsvrc, draw_tree

    draw = draw_ilsvrc if layout == "ilsvrc" else draw_tree
    tree = draw(dest, images=images, classes=classes, seed=seed, defects=defects)
    typer.echo(
        f"{tree.images:,} images in {tree.classes:,} classes, {tree.bytes / 1e6:,.1f} MB, "
        f"in {tree.root}"
    )
    for name, defect in tree.defects.items():
        typer.echo(f"  {_printable(name)}: {defect.what} ({defect.expected})")


@app.command()
def init(
    dest: Annotated[Path, typer.Argument(help="Where the folder 'configs' goes.")] = Path(),
) -> None:
    """Copy the example configs here."""
    from dataprep.examples import copy_configs

    for path in copy_configs(dest):
        typer.echo(str(path))


def _echo(text: str) -> None:
    """Print lines of which some name what a user named: whatever those hold."""
    typer.echo("\n".join(one_line(line) for line in text.split("\n")))


def _store_options(endpoint_url: str | None, pairs: list[str] | None) -> StoreOptions:
    from dataprep.config import store_options

    endpoint = {"store.endpoint_url": endpoint_url} if endpoint_url else {}
    return store_options({**endpoint, **more_settings(pairs or [])})


def _check_limit(max_failures: str) -> None:
    from dataprep.config import allowed_failures

    try:
        allowed_failures(max_failures, 100)
    except ValueError as error:
        _refuse(f"--max-failures: {error}")


def _printable(name: str) -> str:
    from dataprep.names import escape

    return escape(name)


def _refuse(message: str) -> NoReturn:
    from dataprep.errors import ConfigError

    raise ConfigError(message)


def main() -> None:
    """Run a command."""
    start(app, DataprepCommands)


if __name__ == "__main__":
    main()
