"""Parse, call, exit code; nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from dataprep.command_line import Commands, application, one_line, settings, start

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

EndpointUrl = Annotated[
    str | None, typer.Option("--endpoint-url", help="S3 endpoint other than AWS.")
]
StoreSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Store options: --set store.profile=me."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@app.command()
def shard(
    config: Annotated[
        Path | None, typer.Argument(help="A YAML file; every option below overrides it.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="Class folders, or what --kind says: a path or s3:// address."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="Of the source: imagefolder, flat, listing or records. (default: imagefolder)"
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="Where to: a path or s3://bucket/prefix.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Name of the split. (default: train)")] = None,
    format: Annotated[
        list[str] | None,
        typer.Option(help="tfrecord or recordio; give it twice for both. (default: tfrecord)"),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(help="short, long, exact, crop or none. (default: short if --size is given)"),
    ] = None,
    size: Annotated[str | None, typer.Option(help="Pixels: 256, or 256x192.")] = None,
    quality: Annotated[int | None, typer.Option(help="JPEG quality. (default: 95)")] = None,
    shard_size: Annotated[str | None, typer.Option(help="1MB to 128MB. (default: 64MiB)")] = None,
    layout: Annotated[
        str | None,
        typer.Option(help="Features of Examples: imagenet or tfds. (default: imagenet)"),
    ] = None,
    boxes: Annotated[
        str | None, typer.Option(help="Bounding boxes: XML folder, tar of XML, or CSV file.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the shuffle and splits. (default: 0)")
    ] = None,
    validation: Annotated[
        str | None, typer.Option(help="Share of each class for a validation split, as in 5%.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes; small jobs run on threads. (default: one a processor)"),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="A running Dask cluster: tcp://host:8786.")
    ] = None,
    max_failures: Annotated[
        str | None, typer.Option(help="Files: 0 or none, a number, a share as in 1%. (default: 1%)")
    ] = None,
    endpoint_url: EndpointUrl = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other key: --set image.upscale=true."),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite/--resume", help="Remove this split first, or go on with it."),
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the whole config as YAML and exit.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Resize, pack and store a collection as shards; run again to resume."""
    from dataprep.config import dump, load
    from dataprep.job import progress
    from dataprep.job import shard as run
    from dataprep.job.report import summary_json, summary_text

    named = {
        "source": source,
        "kind": kind,
        "output": output,
        "split": split,
        "format": format or None,
        "image.mode": mode,
        "image.size": _size(size),
        "image.quality": quality,
        "shard_size": shard_size,
        "layout": layout,
        "boxes.source": boxes,
        "seed": seed,
        "validation": validation,
        "dask.workers": workers,
        "dask.scheduler": scheduler,
        "max_failures": max_failures,
        "store.endpoint_url": endpoint_url,
    }
    overrides = {key: value for key, value in named.items() if value is not None}
    loaded = load(config, {**overrides, **_settings(set_ or [])})
    if print_config:
        typer.echo(dump(loaded), nl=False)
        return
    summaries = run(loaded, overwrite=overwrite, display=progress.choose())
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
        typer.echo("\n".join(str(one) for one in (*found, *leaks)))
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
        typer.echo("\n".join(one_line(line) for line in found.text.split("\n")))
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


def _size(text: str | None) -> int | tuple[int, int] | None:
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(re.fullmatch("[0-9]+", part) for part in parts):
        _refuse(f"--size {text!r}: give pixels, as in 256, or width x height, as in 256x192")
    return int(parts[0]) if len(parts) == 1 else (int(parts[0]), int(parts[1]))


def _store_options(endpoint_url: str | None, pairs: list[str] | None) -> StoreOptions:
    from dataprep.config import store_options

    endpoint = {"store.endpoint_url": endpoint_url} if endpoint_url else {}
    return store_options({**endpoint, **_settings(pairs or [])})


def _settings(pairs: list[str]) -> dict[str, Any]:
    return settings(pairs, "image.upscale=true")


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
