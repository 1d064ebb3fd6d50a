"""Options that several commands share, and those of a job, which ``plan`` and ``shard`` take."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from dataprep.stores import StoreOptions

MORE = "More about images, records and splits"
RUNNING = "How the job runs"
ANSWER = "Other"

Output = Annotated[str, typer.Argument(metavar="OUTPUT", help="A path or s3://bucket/prefix.")]
OneSplit = Annotated[
    str | None, typer.Option("--split", metavar="SPLIT", help="One split. (default: all)")
]
EndpointUrl = Annotated[
    str | None,
    typer.Option("--endpoint-url", metavar="URL", help="S3 endpoint other than AWS."),
]
StoreSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Store options: --set store.profile=me."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=ANSWER)
]


class _JobOption(NamedTuple):
    """An option, the config key that it sets, and its help."""

    flag: str
    key: str
    help: str
    panel: str | None = None
    kind: Any = str
    metavar: str = ""

    @property
    def name(self) -> str:
        return self.key.replace(".", "_")


_JOB_OPTIONS = (
    _JobOption("--source", "source", "Images: a path or s3:// address; --kind says what it is."),
    _JobOption("--output", "output", "Where the shards go: a path or s3://bucket/prefix."),
    _JobOption(
        "--kind",
        "kind",
        "imagefolder, flat, ilsvrc, webdataset, parquet, listing or records. (default: "
        "imagefolder)",
    ),
    _JobOption("--split", "split", "Name of the split. (default: train)"),
    _JobOption(
        "--format",
        "format",
        "tfrecord, recordio or webdataset; give it again for others. (default: tfrecord)",
        kind=list[str],
    ),
    _JobOption("--size", "image.size", "Pixels: 256, or 256x192. (default: sizes stay)"),
    _JobOption("--quality", "image.quality", "JPEG quality. (default: 95)", kind=int),
    _JobOption("--shard-size", "shard_size", "1MB to 128MB. (default: 64MiB)"),
    _JobOption("--workers", "dask.workers", "Worker processes. (default: one per CPU)", kind=int),
    _JobOption(
        "--mode",
        "image.mode",
        "How --size applies: short, long, exact, crop or none. (default: short)",
        MORE,
    ),
    _JobOption(
        "--layout", "layout", "Features of Examples: imagenet or tfds. (default: imagenet)", MORE
    ),
    _JobOption("--boxes", "boxes.source", "Bounding boxes: XML folder, tar or CSV file.", MORE),
    _JobOption(
        "--exclude",
        "exclude",
        "Files and folders of the source to leave out; repeatable.",
        MORE,
        list[str],
        "GLOB",
    ),
    _JobOption("--seed", "seed", "For the order and the validation split. (default: 0)", MORE, int),
    _JobOption("--validation", "validation", "Share that becomes a validation split: 5%.", MORE),
    _JobOption(
        "--unlabelled", "unlabelled", "Images without classes: each label is -1.", MORE, bool
    ),
    _JobOption(
        "--max-failures",
        "max_failures",
        "Photos that may fail: a number, a share, unlimited. (default: 1%)",
        MORE,
    ),
    _JobOption(
        "--scheduler", "dask.scheduler", "A running Dask cluster: tcp://host:8786.", RUNNING
    ),
    _JobOption("--endpoint-url", "store.endpoint_url", "S3 endpoint other than AWS.", RUNNING),
)


def takes_job(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments of a job; it gets their ShardConfig as its first one."""

    @functools.wraps(command)
    def with_job(config: str | None, set_: list[str] | None, **given: Any) -> None:
        from dataprep.config import load
        from dataprep.config_file import parse_settings

        values = {option.key: given.pop(option.name) for option in _JOB_OPTIONS}
        values["image.size"] = _pixels(values["image.size"])
        overrides = {key: value for key, value in values.items() if value not in (None, [])}
        flags = {option.key: option.flag for option in _JOB_OPTIONS}
        command(load(config, {**overrides, **parse_settings(set_ or [])}, flags), **given)

    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [*_job_parameters(), *(one.replace(kind=one.KEYWORD_ONLY) for one in [*own][1:])]
    with_job.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_job.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_job


def store_options(endpoint_url: str | None, pairs: list[str] | None) -> StoreOptions:
    """How a store is reached, from ``--endpoint-url`` and ``--set``. Raises ConfigError."""
    from dataprep.config import store_options
    from dataprep.config_file import parse_settings

    endpoint = {"store.endpoint_url": endpoint_url} if endpoint_url else {}
    return store_options({**endpoint, **parse_settings(pairs or [])})


def _job_parameters() -> Iterator[inspect.Parameter]:
    """The config file, an option for each row of the table, and ``--set``."""
    file = typer.Argument(
        metavar="CONFIG", help="A YAML file, or s3://...; the options override it."
    )
    yield _parameter("config", str, file)
    for one in _JOB_OPTIONS:
        metavar: str | None = one.metavar or one.flag.rpartition("-")[2].upper()
        if one.kind is bool:
            metavar = None
        option = typer.Option(one.flag, metavar=metavar, help=one.help, rich_help_panel=one.panel)
        yield _parameter(one.name, one.kind, option)
    any_key = typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any other key (docs/shard-config.md): --set image.upscale=true.",
        rich_help_panel=MORE,
    )
    yield _parameter("set_", list[str], any_key)


def _parameter(name: str, kind: Any, option: Any) -> inspect.Parameter:
    annotation = Annotated[kind | None, option]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=None, annotation=annotation)


def _pixels(size: str | None) -> Any:
    """``256`` as a number, ``256x192`` as two; other text as it is, which the config refuses."""
    parts = (size or "").split("x")
    if not all(part.isdecimal() for part in parts):
        return size
    numbers = [int(part) for part in parts]
    return numbers[0] if len(numbers) == 1 else numbers
