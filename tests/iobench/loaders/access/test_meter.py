"""Every access mode reads each sample once in an epoch, and reports what it needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import dataprep
from iobench.data.data_summary import summarize_data
from iobench.loaders import Loader, LoaderSettings
from iobench.loaders.access import SETTINGS, metered
from iobench.loaders.read_patterns import windows_of_each_worker
from iobench.results.trial import Context, Location, TrialSpec
from iobench.trials import loader_trial
from iobench.trials.loader_grid import LoaderTrial
from iobench.trials.loader_opening import open_loader

SAMPLES = 120
TENSORFLOW = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]
POINTS = [
    ("file", "raw"),
    ("file", "torch-iterable"),
    ("file", "torch-map"),
    ("pipe", "torch-iterable"),
    pytest.param("pipe", "tf-data", marks=TENSORFLOW),
    ("lazy", "torch-map"),
    ("mount", "torch-iterable"),
    ("mount", "torch-map"),
]


def params_of(access: str, loader: str, **changed: Any) -> dict[str, Any]:
    """Return the params of a trial with this access mode, whose images are not decoded."""
    if loader != "raw":
        pytest.importorskip("tensorflow" if loader == "tf-data" else "torch")
    params = {
        "loader": loader,
        "data": "shards@disk" if access == "mount" else "shards@s3",
        "access": access,
        "cache": "cold" if access == "mount" else "warm",
        "batch_size": 8,
        "workers": 2,
        "prefetch": 2,
        "decode": False,
        "epochs": 2,
    }
    mode_settings = {"connections": 4, "shuffle_buffer": 16}
    if access in SETTINGS:
        setting = SETTINGS[access]
        params[setting] = mode_settings[setting]
    return {**params, **changed}


def opened(params: Mapping[str, Any], context: Context) -> Loader:
    """Open the loader of a trial."""
    location = context.locations[params["data"]]
    return open_loader(LoaderTrial.model_validate(params), location, context)


def images(batches: Iterator[Any]) -> list[bytes]:
    """Return the encoded images of these batches in their order, for any framework."""
    encoded = []
    for batch in batches:
        values = batch.images.numpy() if hasattr(batch.images, "numpy") else batch.images
        encoded += [bytes(image) for image in values]
    return encoded


@pytest.fixture
def expected(locations: Mapping[str, Location]) -> Counter[bytes]:
    """Return the number of times that each stored image occurs."""
    return Counter(bytes(sample.image) for sample in dataprep.open(locations["shards@disk"].uri))


@pytest.mark.parametrize(("access", "loader"), POINTS)
def test_each_sample_once_an_epoch(
    context: Context, expected: Counter[bytes], access: str, loader: str
) -> None:
    """Each mode gives every sample once, in another order in each epoch."""
    opened_loader = opened(params_of(access, loader), context)
    try:
        orders = [images(opened_loader.epoch(number)) for number in range(2)]
    finally:
        opened_loader.close()
    assert [Counter(order) for order in orders] == [expected] * 2
    assert orders[0] != orders[1]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_order_of_a_stream_is_of_seed_and_epoch(context: Context, workers: int) -> None:
    """The order is the same for the same seed and epoch, and differs for others."""
    params = params_of("pipe", "torch-iterable", workers=workers)

    def order(seed: int, epoch: int) -> list[bytes]:
        trial = LoaderTrial.model_validate({**params, "seed": seed})
        loader = open_loader(trial, context.locations["shards@s3"], context)
        try:
            return images(loader.epoch(epoch))
        finally:
            loader.close()

    first = order(1, 0)
    assert order(1, 0) == first
    assert order(1, 1) != first
    assert order(2, 0) != first


@pytest.mark.parametrize(("access", "loader"), POINTS)
def test_a_trial_tells_what_its_mode_needed(context: Context, access: str, loader: str) -> None:
    """The metrics have disk, memory, bytes and requests of all epochs."""
    outcome = loader_trial.run(TrialSpec("loader", params_of(access, loader)), context)
    metrics = outcome.metrics
    location = context.locations["shards@disk"]
    size = summarize_data(location, "tfrecord").bytes
    shards = summarize_data(location, "tfrecord").objects
    assert metrics["data_bytes"] == size
    assert metrics["memory_limit_bytes"] > 0
    # The process needs no new memory if earlier tests have freed enough.
    assert metrics["memory_needed_bytes"] >= 0
    assert (metrics["disk_needed_bytes"] >= size) == (access == "file")
    assert metrics["whole_epochs"] == 3  # A rate needs at least three epochs.
    assert 0 < metrics["time_to_first_batch_s"] <= metrics["first_epoch_s"]
    assert metrics["steady_samples_per_s"] > 0
    if access == "mount":
        assert "store_requests" not in metrics
    else:
        epochs = 1 if access == "file" else 3
        most = SAMPLES if access == "lazy" else 2 * shards
        assert metrics["store_read_bytes"] >= epochs * size
        # Each process also reads manifest and tables, and neighbouring samples share a request.
        assert epochs < metrics["store_requests"] <= most * epochs + 60
    assert context.scratch is not None
    assert list(context.scratch.iterdir()) == []


def test_a_stream_tells_what_its_buffers_held(context: Context) -> None:
    """The buffer of a worker holds 16 encoded samples, and one more is on its way."""
    outcome = loader_trial.run(TrialSpec("loader", params_of("pipe", "torch-iterable")), context)
    dataset = dataprep.open(context.locations["shards@disk"].uri)
    sizes = sorted(len(sample.image) for sample in dataset)
    held = outcome.metrics["shuffle_buffer_bytes"]
    assert 2 * sum(sizes[:17]) <= held <= 2 * sum(sizes[-17:])


def test_without_shuffling_there_is_no_buffer(context: Context) -> None:
    """A size of the shuffle buffer has no effect on a loader that reads in sequence."""
    params = {**params_of("pipe", "torch-iterable"), "shuffle": False}
    metrics = loader_trial.run(TrialSpec("loader", params), context).metrics
    assert metrics["shuffle_buffer_bytes"] == 0
    settings = LoaderSettings(workers=2, shuffle=False, shuffle_buffer=1_000)
    assert windows_of_each_worker(settings, 40_000.0).buffer_samples == 0
    shuffled = LoaderSettings(workers=2, shuffle=True, shuffle_buffer=1_000)
    assert windows_of_each_worker(shuffled, 40_000.0).buffer_samples == 1_000


def test_a_copy_may_stay_in_memory(context: Context) -> None:
    """A copy is labelled like local data; a stream keeps nothing in the page cache."""
    copy_spec = TrialSpec("loader", params_of("file", "raw"))
    cold_of_copy = loader_trial.run(copy_spec, context).cold
    assert cold_of_copy is not None
    assert cold_of_copy.label == "server cache unknown"
    assert cold_of_copy.cache_resident is True
    stream_spec = TrialSpec("loader", params_of("lazy", "torch-map"))
    cold_of_stream = loader_trial.run(stream_spec, context).cold
    assert cold_of_stream is not None
    assert cold_of_stream.cache_resident is None


def test_without_a_mode_nothing_is_measured(context: Context) -> None:
    """Neither direct access nor a loader without data gives figures of a mode."""
    params = {**params_of("mount", "raw"), "access": "direct"}
    loader = opened(params, context)
    location = context.locations["shards@disk"]
    with metered(params, loader, location, summarize_data(location, "tfrecord")) as meter:
        pass
    assert meter == {}
    with metered({**params, "access": "file"}, loader, None, None) as meter:
        pass
    assert meter == {}
