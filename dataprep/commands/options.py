"""What several commands share: their options, and how they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dataprep.command_line import one_line, settings

if TYPE_CHECKING:
    from dataprep.stores import StoreOptions

Output = Annotated[str, typer.Argument(help="A path or s3://bucket/prefix.")]
OneSplit = Annotated[str | None, typer.Option("--split", help="One split. (default: all)")]
EndpointUrl = Annotated[
    str | None, typer.Option("--endpoint-url", help="S3 endpoint other than AWS.")
]
StoreSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Store options: --set store.profile=me."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


def store_options(endpoint_url: str | None, pairs: list[str] | None) -> StoreOptions:
    """How a store is reached, from ``--endpoint-url`` and ``--set``. Raises ConfigError."""
    from dataprep.config import store_options

    endpoint = {"store.endpoint_url": endpoint_url} if endpoint_url else {}
    return store_options({**endpoint, **more_settings(pairs or [])})


def more_settings(pairs: list[str]) -> dict[str, Any]:
    """``KEY=VALUE`` pairs of ``--set``. Raises ConfigError."""
    return settings(pairs, "image.upscale=true")


def echo(text: str) -> None:
    """Print lines of which some name what a user named: whatever those hold."""
    typer.echo("\n".join(one_line(line) for line in text.split("\n")))


def refuse(message: str) -> NoReturn:
    """Raise ConfigError: options that do not go together, or a value that is none."""
    from dataprep.errors import ConfigError

    raise ConfigError(message)
