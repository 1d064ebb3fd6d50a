"""A job on the command line: a YAML file, and the options that override it.

``plan`` and ``shard`` take the same ones, which stand here once: ``takes_a_job`` puts them in
front of a command's own.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataprep.commands.options import EndpointUrl, more_settings
from dataprep.errors import ConfigError

if TYPE_CHECKING:
    from dataprep.config import ShardConfig


def _job(
    config: Annotated[
        Path | None, typer.Argument(help="A YAML file; every option below overrides it.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="Class folders, or what --kind says: a path or s3:// address."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="imagefolder, flat, ilsvrc, listing or records. (default: imagefolder)"),
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
        typer.Option(help="Worker processes. (default: one per CPU)"),
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
) -> ShardConfig:
    """The config that a file and these options give. Raises ConfigError."""
    from dataprep.config import load

    named = {
        "source": source,
        "output": output,
        "kind": kind,
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
    return load(config, {**overrides, **more_settings(set_ or [])})


def takes_a_job(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first parameter is a ShardConfig, as one that takes a job's options."""
    own = _parameters(command)[1:]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        job = {option.name: given.pop(option.name) for option in _OPTIONS}
        command(_job(**job), **given)

    parameters = [*_OPTIONS, *own]
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_options


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Its parameters, their annotations no longer text."""
    hints = typing.get_type_hints(function, localns={"ShardConfig": Any}, include_extras=True)
    return [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in inspect.signature(function).parameters.values()
    ]


_OPTIONS = _parameters(_job)


def _size(text: str | None) -> int | tuple[int, int] | None:
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(re.fullmatch("[0-9]+", part) for part in parts):
        raise ConfigError(
            f"--size {text!r}: give pixels, as in 256, or width x height, as in 256x192"
        )
    return int(parts[0]) if len(parts) == 1 else (int(parts[0]), int(parts[1]))
