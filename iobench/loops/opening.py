"""Loaders for a loop: made, and held against what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from iobench.access import DownloadedLoader
from iobench.errors import TrialFailed, Unavailable
from iobench.extensions import made
from iobench.loaders import LOADERS, Batch, Loader, LoaderSettings
from iobench.loaders.own import TAKE_PIXELS
from iobench.stored import check_form
from iobench.trial import Context, Place


def reached(
    params: Mapping[str, Any], place: Place | None, settings: LoaderSettings, context: Context
) -> Loader:
    """The loader of a trial, which reaches its data as ``access`` says.

    Raises:
        Unavailable: the trial has no folder for a download; what ``built`` raises.
    """
    name = params["loader"]
    if params.get("access") != "file" or place is None:
        return built(name, place, settings, context)
    if context.scratch is None:
        raise Unavailable("access file needs a folder to download to")
    return DownloadedLoader(
        place,
        lambda where: built(name, where, settings, context),
        context.scratch,
        batch_size=settings.batch_size,
        connections=params["connections"],
    )


def built(name: str, place: Place | None, settings: LoaderSettings, context: Context) -> Loader:
    """The loader of that name, for data that it reads.

    Raises:
        Unavailable: the data have another form, or what it needs is not there.
        TrialFailed: it is another package's, and broken.
        ConfigError: it cannot be imported.
    """
    kind = LOADERS.load(name)
    reads = getattr(kind, "reads", None)  # some only know once they have a place
    if place is not None and reads is not None:
        check_form(place, reads)
    if place is not None and place.decoded and name not in TAKE_PIXELS:
        raise Unavailable(
            f"{name} reads encoded images, and these are stored as pixels: "
            f"{', '.join(sorted(TAKE_PIXELS))} read them"
        )
    loader: Loader = context.around.loader(
        made(LOADERS, name, Loader, lambda: kind(place, settings, context.clock))
    )
    return loader


def batches_of(loader: Loader, number: int) -> Iterator[Batch]:
    """An epoch of a loader, whoever wrote it.

    Raises:
        TrialFailed: it gives something else than batches.
    """
    for batch in loader.epoch(number):
        if not isinstance(batch, Batch):
            raise TrialFailed(
                f"the loader gives {type(batch).__name__} where iobench.loaders.Batch belongs: "
                "Batch(images, labels, samples)"
            )
        yield batch


def loader_settings(params: Mapping[str, Any]) -> LoaderSettings:
    """Those of a trial's params that are the loader's."""
    known = LoaderSettings.model_fields
    return LoaderSettings(**{name: value for name, value in params.items() if name in known})


def check_frameworks(loader: Loader, consumer_framework: str) -> None:
    """Refuse a loader whose batches the consumer cannot take.

    Raises:
        Unavailable: their frameworks differ.
    """
    if consumer_framework not in ("none", loader.framework) and loader.framework != "none":
        raise Unavailable(
            f"a {consumer_framework} training loop does not take {loader.framework} batches"
        )


def check_shares(loader: Loader, name: str, among: str, instead: str) -> None:
    """Refuse a loader that would give every rank all samples.

    Args:
        loader: that is to be one of several.
        name: its own.
        among: what there are several of: ``devices``, ``processes``.
        instead: what else to ask for.

    Raises:
        Unavailable: it does not say that it shares them.
    """
    if not getattr(loader, "by_rank", False):
        raise Unavailable(
            f"loader {name} does not share its samples among several {among}: take torch-iterable, "
            f"torch-map or torch-folder, or {instead}"
        )
