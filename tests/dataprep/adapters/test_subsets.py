"""Subsets in the adapters: order, ranks, workers and states are those of their samples."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dataprep
from dataprep.dataset import Dataset
from dataprep.errors import ConfigError
from dataprep.staging import stage
from tests.commandline import FORMATS
from tests.dataprep.adapters.conftest import images_of, stored

torch = pytest.importorskip("torch")
data_loader = torch.utils.data.DataLoader
FEW_CORES = pytest.mark.filterwarnings("ignore:This DataLoader will create")
QUERY = "label < 6 and source_width >= 400"


@pytest.fixture(scope="module")
def dataset(output: Path) -> Dataset:
    """120 samples in several shards."""
    return dataprep.open(output)


@pytest.fixture
def part(dataset: Dataset) -> Dataset:
    """A subset of some of them."""
    return dataset.where(QUERY)


def taken(batches: Any, steps: int | None = None) -> list[bytes]:
    """The images of some batches, or of all."""
    return [image for images, _ in islice(batches, steps) for image in images]


@given(
    st.sets(st.integers(0, 119), min_size=1),
    st.booleans(),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(0, 3),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None
)
def test_each_sample_once_and_the_rest_after_a_resume(
    dataset: Dataset,
    chosen: set[int],
    iterable: bool,
    ranks: int,
    batch: int,
    workers: int,
    steps: int,
    epoch: int,
) -> None:
    """Ranks and workers divide the samples of a subset; a resume gives exactly the rest."""
    part = dataset.select(chosen)
    wanted = sorted(images_of(part))

    def opened(rank: int, world_size: int, size: int) -> Any:
        options: dict[str, Any] = {"iterable": iterable, "batch_size": size, "seed": 3}
        return dataprep.to_torch(
            part, rank=rank, world_size=world_size, threads=0, epoch=epoch, **options
        )

    readers = [opened(rank, ranks, batch) for rank in range(ranks)]
    numbers = [
        number
        for reader in readers
        for worker in range(workers)
        for number in reader.samples.sequence(epoch, worker, workers).tolist()
    ]
    assert sorted(numbers) == list(range(len(part)))
    first = []
    states = []
    for reader in readers:
        iterator = iter(reader)
        first += taken(iterator, steps)
        states.append(reader.state_dict())
        iterator.close()
    resumed = opened(0, 1, ranks * batch)
    resumed.load_state_dict(states[0])
    rest = taken(resumed) if resumed.state_dict()["epoch"] == epoch else []
    assert sorted(first + rest) == wanted


@FEW_CORES
@pytest.mark.process
@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("style", ["map", "iterable", "batches"])
def test_workers(part: Dataset, context: str, style: str) -> None:
    """Workers of a ``DataLoader`` read the subset and nothing else."""
    size = 8 if style == "batches" else None
    how: dict[str, Any] = {"iterable": style != "map", "batch_size": size}
    images: Any = dataprep.to_torch(part, **how)
    options: dict[str, Any] = {"batch_size": None if size else 8}
    if style == "map":
        options["sampler"] = images.sampler
    loader = data_loader(images, num_workers=2, multiprocessing_context=context, **options)
    assert sorted(taken(loader)) == sorted(images_of(part))


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@FEW_CORES
@pytest.mark.process
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("iterable", [False, True], ids=["map", "iterable"])
def test_states_of_workers(output: Path, format: str, iterable: bool) -> None:
    """torchdata's DataLoader goes on within a subset, and refuses the state of another one."""
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    dataset = dataprep.open(output, format=format)

    def opened(query: str) -> Any:
        samples: Any = dataprep.to_torch(dataset.where(query), iterable=iterable, seed=4)
        sampler = {} if iterable else {"sampler": samples.sampler}
        return stateful(samples, num_workers=2, batch_size=8, **sampler)

    whole = taken(opened(QUERY))
    assert sorted(whole) == sorted(images_of(dataset.where(QUERY)))
    loader = opened(QUERY)
    before = taken(loader, 3)
    state = loader.state_dict()
    resumed = opened(QUERY)
    resumed.load_state_dict(state)
    assert before + taken(resumed) == whole
    other = opened("label < 5")
    other.load_state_dict(state)
    with pytest.raises(ConfigError, match="belongs to the subset"):
        taken(other)


@pytest.mark.parametrize("format", FORMATS)
def test_a_subset_of_an_output_on_s3(
    output: Path, on_s3: Callable[[str], Dataset], format: str
) -> None:
    """It has the samples, and the order, of the subset of a copy on a disk."""
    local = dataprep.open(output, format=format).where(QUERY)
    remote = on_s3(format).where(QUERY)
    assert stored(remote) == stored(local)
    assert remote.subset == local.subset
    for options in ({"iterable": False}, {"iterable": True}, {"iterable": True, "batch_size": 8}):
        ours, theirs = (dataprep.to_torch(part, **options) for part in (remote, local))
        assert read_once(ours) == read_once(theirs)


def read_once(samples: Any) -> list[Any]:
    """All samples, or batches, of one epoch; those of the map style in the order of its sampler."""
    if hasattr(samples, "sampler"):
        return [samples[number] for number in samples.sampler]
    return [(images, np.asarray(labels).tolist()) for images, labels in samples]


@pytest.mark.parametrize("iterable", [False, True], ids=["map", "iterable"])
def test_a_state_names_its_subset(dataset: Dataset, part: Dataset, iterable: bool) -> None:
    """A state of another subset, or of the whole, is refused; the same subset goes on."""
    options: dict[str, Any] = {"iterable": iterable, "batch_size": 4}
    whole = dataprep.to_torch(dataset, **options).state_dict()
    state = dataprep.to_torch(part, **options).state_dict()
    assert "subset" not in whole
    assert state["subset"] == part.subset
    dataprep.to_torch(dataset.where(QUERY), **options).load_state_dict(state)
    other = dataprep.to_torch(part.select(range(9)), **options)
    for refused in (state, whole, {"epoch": 0, "seed": 0, "samples": 4}):
        with pytest.raises(ConfigError, match=r"select the same samples by dataset\.where"):
            other.load_state_dict(refused)
    with pytest.raises(ConfigError, match="the samples are those of the whole data set"):
        dataprep.to_torch(dataset, **options).load_state_dict(state)


def test_a_state_of_a_sampler_names_its_subset(dataset: Dataset, part: Dataset) -> None:
    """The state that StatefulDataLoader saves of ``images.sampler`` is compared as well."""
    iterator: Any = iter(dataprep.to_torch(part).sampler)
    next(iterator)
    again: Any = iter(dataprep.to_torch(part).sampler)
    again.load_state_dict(iterator.state_dict())
    assert list(again) == list(iterator)
    whole: Any = iter(dataprep.to_torch(dataset).sampler)
    with pytest.raises(ConfigError, match="belongs to the subset"):
        whole.load_state_dict(iterator.state_dict())


def test_a_subset_of_a_share(dataset: Dataset, tmp_path: Path) -> None:
    """One rank reads it; several are refused, because steps of the hosts would differ."""
    stage(dataset.store.uri, tmp_path / "share", host=dataprep.Part(0, 2))
    part = dataprep.open(tmp_path / "share").where("label < 5")
    assert sorted(dataprep.to_torch(part, iterable=True)) == sorted(stored(part))
    with pytest.raises(ConfigError, match="2 ranks cannot read a subset of a host's share"):
        dataprep.to_torch(part, rank=0, world_size=2)


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("tf")
def test_tensorflow(part: Dataset) -> None:
    """``to_tf`` reads the subset and nothing else, with its length."""
    made = dataprep.to_tf(part, decode=False)
    samples = [(image, int(label)) for image, label in made.as_numpy_iterator()]
    assert sorted(samples) == sorted(stored(part))
    assert len(made) == len(part)


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("mx")
def test_mxnet(output: Path) -> None:
    """``to_mxnet`` reads the subset and nothing else."""
    part = dataprep.open(output, format="recordio").where(QUERY)
    batches = dataprep.to_mxnet(
        part, batch_size=8, augmentation=dataprep.Augmentation(size=32), threads=1
    )
    labels = [int(label) for batch in batches for label in batch.label[0].asnumpy()]
    assert sorted(labels) == sorted(part.labels.tolist())
