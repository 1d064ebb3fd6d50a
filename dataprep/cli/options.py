"""The options that several commands share, and the options of a job for ``plan`` and ``shard``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from dataprep.stores import StoreOptions

# The titles of groups of options in the help.
MORE = "More about images, records and splits"
RUNNING = "How the job runs"
OTHER = "Other"

Output = Annotated[
    str, typer.Argument(metavar="OUTPUT", help="The output: a path or s3://bucket/prefix.")
]
OneSplit = Annotated[
    str | None,
    typer.Option("--split", metavar="SPLIT", help="Name of the split. (default: all splits)"),
]
EndpointUrl = Annotated[
    str | None,
    typer.Option("--endpoint-url", metavar="URL", help="Address of an S3 server other than AWS."),
]
StoreSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Set a store option, such as --set store.profile=me."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=OTHER)]


class _JobOption(NamedTuple):
    """An option that sets a key of the config.

    Attributes:
        flag: the option, such as ``--size``.
        key: the key of the config, such as ``image.size``.
        help: the help text.
        group: the title of the group in the help; None for the first group.
        value_type: the type of the value.
        metavar: the name of the value in the help; empty to derive it from the option.
    """

    flag: str
    key: str
    help: str
    group: str | None = None
    value_type: Any = str
    metavar: str = ""

    @property
    def name(self) -> str:
        """The name of the parameter of a command."""
        return self.key.replace(".", "_")


_JOB_OPTIONS = (
    _JobOption("--source", "source", "The images: a path or s3:// address. See --kind."),
    _JobOption("--output", "output", "The location for the shards: a path or s3://bucket/prefix."),
    _JobOption(
        "--kind",
        "kind",
        "Kind of source: imagefolder, flat, ilsvrc, webdataset, parquet, listing or records. "
        "(default: imagefolder)",
    ),
    _JobOption("--split", "split", "Name of the split. (default: train)"),
    _JobOption(
        "--format",
        "format",
        "tfrecord, recordio or webdataset; repeat it for several formats. (default: tfrecord)",
        value_type=list[str],
    ),
    _JobOption("--size", "image.size", "Size in pixels: 256, or 256x192. (default: sizes stay)"),
    _JobOption("--quality", "image.quality", "JPEG quality. (default: 95)", value_type=int),
    _JobOption("--shard-size", "shard_size", "Size of a shard, 1MB to 128MB. (default: 64MiB)"),
    _JobOption(
        "--workers",
        "dask.workers",
        "Number of worker processes. (default: one per CPU)",
        value_type=int,
    ),
    _JobOption(
        "--mode",
        "image.mode",
        "How to apply --size: short, long, exact, crop or none. (default: short)",
        MORE,
    ),
    _JobOption(
        "--layout",
        "layout",
        "Names of features in TFRecord: imagenet or tfds. (default: imagenet)",
        MORE,
    ),
    _JobOption(
        "--boxes",
        "boxes.source",
        "Bounding boxes: a folder of XML files, a tar or a CSV file.",
        MORE,
    ),
    _JobOption(
        "--exclude",
        "exclude",
        "Files and folders of the source to leave out. Can be repeated.",
        MORE,
        value_type=list[str],
        metavar="GLOB",
    ),
    _JobOption(
        "--seed",
        "seed",
        "Seed of the sample order and of the validation split. (default: 0)",
        MORE,
        value_type=int,
    ),
    _JobOption(
        "--validation",
        "validation",
        "Part of the samples for a validation split, such as 5%.",
        MORE,
    ),
    _JobOption(
        "--unlabelled",
        "unlabelled",
        "The images have no classes. Each label is -1.",
        MORE,
        value_type=bool,
    ),
    _JobOption(
        "--max-failures",
        "max_failures",
        "Photos that may fail: a number, a percentage, or unlimited. (default: 1%)",
        MORE,
    ),
    _JobOption(
        "--scheduler",
        "dask.scheduler",
        "Address of a running Dask cluster, such as tcp://host:8786.",
        RUNNING,
    ),
    _JobOption(
        "--endpoint-url", "store.endpoint_url", "Address of an S3 server other than AWS.", RUNNING
    ),
)


def takes_job(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a job.

    The command gets their ShardConfig as its first argument. Its other parameters stay.
    """

    @functools.wraps(command)
    def with_job(config: str | None, set_: list[str] | None, **arguments: Any) -> None:
        """Load the config of the job with the options as overrides, and call the command."""
        from dataprep.config.files import parse_settings
        from dataprep.config.shard_config import load

        settings: dict[str, object] = {}
        flags: dict[str, str] = {}
        for option in _JOB_OPTIONS:
            value = arguments.pop(option.name)
            if option.key == "image.size":
                value = _parsed_size(value)
            if value not in (None, []):
                settings[option.key] = value
            flags[option.key] = option.flag
        settings.update(parse_settings(set_ or []))
        command(load(config, settings, flags), **arguments)

    # Typer reads the options of a command from its signature.
    parameters = list(_job_parameters())
    _, *own_parameters = inspect.signature(command, eval_str=True).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters.extend(parameter.replace(kind=keyword) for parameter in own_parameters)
    with_job.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_job.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_job


def store_options(endpoint_url: str | None, pairs: list[str] | None) -> StoreOptions:
    """Return the options of a store from ``--endpoint-url`` and ``--set``.

    Raises:
        ConfigError: a key or a value is wrong.
    """
    from dataprep.config.files import parse_settings
    from dataprep.config.shard_config import store_options

    endpoint = {"store.endpoint_url": endpoint_url} if endpoint_url else {}
    return store_options({**endpoint, **parse_settings(pairs or [])})


def _job_parameters() -> Iterator[inspect.Parameter]:
    """Yield the parameters for the config file, for each option of a job, and for ``--set``."""
    file = typer.Argument(
        metavar="CONFIG", help="A YAML file or s3:// address. Options override its settings."
    )
    yield _parameter("config", str, file)
    for job_option in _JOB_OPTIONS:
        metavar: str | None = job_option.metavar
        if job_option.value_type is bool:
            metavar = None
        elif not metavar:
            # The last word of the option, such as SIZE for --shard-size.
            metavar = job_option.flag.rpartition("-")[2].upper()
        option = typer.Option(
            job_option.flag,
            metavar=metavar,
            help=job_option.help,
            rich_help_panel=job_option.group,
        )
        yield _parameter(job_option.name, job_option.value_type, option)
    any_key = typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set any key (docs/shard-config.md), such as --set image.upscale=true.",
        rich_help_panel=MORE,
    )
    yield _parameter("set_", list[str], any_key)


def _parameter(name: str, value_type: Any, option: Any) -> inspect.Parameter:
    """Return a parameter of a command, which is None if the option is not given."""
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[value_type | None, option],
    )


def _parsed_size(size: str | None) -> Any:
    """Return the number of ``256``, or the two numbers of ``256x192``.

    Any other text is returned unchanged. The config refuses it with a message.
    """
    parts = (size or "").split("x")
    if not all(part.isdecimal() for part in parts):
        return size
    numbers = [int(part) for part in parts]
    if len(numbers) == 1:
        return numbers[0]
    return numbers
