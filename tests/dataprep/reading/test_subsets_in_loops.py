"""The adapters read subsets, with order, ranks, workers and states of these samples."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dataprep
from dataprep.errors import ConfigError, DatasetError
from dataprep.reading.dataset import Dataset
from dataprep.reading.staging import stage
from tests.commandline import FORMATS
from tests.dataprep.reading.conftest import images_of, stored_samples
from tests.dataprep.reading.torch_training import FEW_CORES, STATEFUL

torch = pytest.importorskip("torch")
data_loader = torch.utils.data.DataLoader
QUERY = "label < 6 and source_width >= 400"


@pytest.fixture(scope="module")
def dataset(output: Path) -> Dataset:
    """120 samples in several shards."""
    return dataprep.open(output)


@pytest.fixture
def part(dataset: Dataset) -> Dataset:
    """A subset of some samples."""
    return dataset.where(QUERY)


def images_of_batches(batches: Any, steps: int | None = None) -> list[bytes]:
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
    """Ranks and workers divide a subset, and a resume reads exactly the rest."""
    part = dataset.select(chosen)
    expected = sorted(images_of(part))

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
        for number in reader.samples.samples_of_worker(epoch, worker, workers).tolist()
    ]
    assert sorted(numbers) == list(range(len(part)))
    first = []
    states = []
    for reader in readers:
        iterator = iter(reader)
        first += images_of_batches(iterator, steps)
        states.append(reader.state_dict())
        iterator.close()
    resumed = opened(0, 1, ranks * batch)
    resumed.load_state_dict(states[0])
    rest = images_of_batches(resumed) if resumed.state_dict()["epoch"] == epoch else []
    assert sorted(first + rest) == expected


@FEW_CORES
@pytest.mark.process
@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("style", ["map", "iterable", "batches"])
def test_workers(part: Dataset, context: str, style: str) -> None:
    """Workers of a ``DataLoader`` read exactly the subset."""
    size = 8 if style == "batches" else None
    how: dict[str, Any] = {"iterable": style != "map", "batch_size": size}
    images: Any = dataprep.to_torch(part, **how)
    options: dict[str, Any] = {"batch_size": None if size else 8}
    if style == "map":
        options["sampler"] = images.sampler
    loader = data_loader(images, num_workers=2, multiprocessing_context=context, **options)
    assert sorted(images_of_batches(loader)) == sorted(images_of(part))


@STATEFUL
@FEW_CORES
@pytest.mark.process
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("iterable", [False, True], ids=["map", "iterable"])
def test_states_of_workers(output: Path, format: str, iterable: bool) -> None:
    """torchdata's DataLoader continues in a subset, and refuses the state of another one."""
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    dataset = dataprep.open(output, format=format)

    def opened(query: str) -> Any:
        samples: Any = dataprep.to_torch(dataset.where(query), iterable=iterable, seed=4)
        sampler = {} if iterable else {"sampler": samples.sampler}
        return stateful(samples, num_workers=2, batch_size=8, **sampler)

    all_batches = images_of_batches(opened(QUERY))
    assert sorted(all_batches) == sorted(images_of(dataset.where(QUERY)))
    loader = opened(QUERY)
    before = images_of_batches(loader, 3)
    state = loader.state_dict()
    resumed = opened(QUERY)
    resumed.load_state_dict(state)
    assert before + images_of_batches(resumed) == all_batches
    other = opened("label < 5")
    other.load_state_dict(state)
    with pytest.raises(ConfigError, match="belongs to the subset"):
        images_of_batches(other)


@pytest.mark.parametrize("format", FORMATS)
def test_a_subset_of_an_output_on_s3(
    output: Path, on_s3: Callable[[str], Dataset], format: str
) -> None:
    """A subset on S3 has the samples and the order of the subset on a disk."""
    local = dataprep.open(output, format=format).where(QUERY)
    remote = on_s3(format).where(QUERY)
    assert stored_samples(remote) == stored_samples(local)
    assert remote.subset == local.subset
    for options in ({"iterable": False}, {"iterable": True}, {"iterable": True, "batch_size": 8}):
        ours, theirs = (dataprep.to_torch(part, **options) for part in (remote, local))
        assert read_once(ours) == read_once(theirs)


def read_once(samples: Any) -> list[Any]:
    """The samples or batches of one epoch. Those of the map style are in its sampler's order."""
    if hasattr(samples, "sampler"):
        return [samples[number] for number in samples.sampler]
    return [(images, np.asarray(labels).tolist()) for images, labels in samples]


@pytest.mark.parametrize("iterable", [False, True], ids=["map", "iterable"])
def test_a_state_names_its_subset(dataset: Dataset, part: Dataset, iterable: bool) -> None:
    """A state of another subset, or of the whole, is refused, and the same subset continues."""
    options: dict[str, Any] = {"iterable": iterable, "batch_size": 4}
    saved_state = dataprep.to_torch(dataset, **options).state_dict()
    state = dataprep.to_torch(part, **options).state_dict()
    assert "subset" not in saved_state
    assert state["subset"] == part.subset
    dataprep.to_torch(dataset.where(QUERY), **options).load_state_dict(state)
    other = dataprep.to_torch(part.select(range(9)), **options)
    for refused in (state, saved_state, {"epoch": 0, "seed": 0, "samples": 4}):
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
    sampler: Any = iter(dataprep.to_torch(dataset).sampler)
    with pytest.raises(ConfigError, match="belongs to the subset"):
        sampler.load_state_dict(iterator.state_dict())


@pytest.fixture(scope="module")
def hosts(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> list[Dataset]:
    """The share of each of two hosts. Read only."""
    folder = tmp_path_factory.mktemp("hosts")
    for number in range(2):
        stage(dataset.store.uri, folder / str(number), host=dataprep.Part(number, 2))
    return [dataprep.open(folder / str(number)) for number in range(2)]


class TestShares:
    """The shares of two hosts have subsets, each with two ranks."""

    def readers(self, parts: list[Dataset], **options: Any) -> list[Any]:
        """The samples that each of the four ranks reads, in batches of three."""
        return [
            dataprep.to_torch(
                parts[rank // 2],
                **{"batch_size": 3, "rank": rank, "world_size": 4, "threads": 0, **options},
            )
            for rank in range(4)
        ]

    @pytest.mark.parametrize("iterable", [False, True], ids=["map", "iterable"])
    @pytest.mark.parametrize("even", ["keep", "drop", "pad"])
    def test_ranks_divide_the_subset(
        self, dataset: Dataset, hosts: list[Dataset], even: Any, iterable: bool
    ) -> None:
        """Each sample is read once, or all ranks have equal steps, also after a resume."""
        parts = [host.where("label < 5").where("source_width >= 400") for host in hosts]
        expected = sorted(images_of(dataset.where("label < 5 and source_width >= 400")))
        assert len(parts[0]) != len(parts[1])
        readers = self.readers(parts, even=even, iterable=iterable)
        iterators = [iter(reader) for reader in readers]
        first = [images_of_batches(iterator, 1) for iterator in iterators]
        states = [reader.state_dict() for reader in readers]
        assert all(state == states[0] for state in states)
        rest = [images_of_batches(iterator) for iterator in iterators]
        resumed = self.readers(parts, even=even, iterable=iterable)
        for reader in resumed:
            reader.load_state_dict(states[3])
        assert [images_of_batches(reader) for reader in resumed] == rest
        lengths = {
            len(part_of_first) + len(others)
            for part_of_first, others in zip(first, rest, strict=True)
        }
        read = [image for images in (*first, *rest) for image in images]
        if even == "keep":
            assert sorted(read) == expected
            return
        (length,) = lengths
        assert length % 3 == 0
        assert {*read} <= {*expected}
        if even == "drop":
            assert len({*read}) == len(read)
        else:
            assert {*read} == {*expected}

    def test_a_state_of_another_subset_is_refused(self, hosts: list[Dataset]) -> None:
        """Another subset is refused, even if its samples on this host are the same."""
        parts = [host.where("label < 5") for host in hosts]
        state = self.readers(parts)[0].state_dict()
        others = [host.where("label < 4") for host in hosts]
        with pytest.raises(ConfigError, match="belongs to the subset"):
            self.readers(others)[1].load_state_dict(state)

    def test_one_rank_reads_the_samples_of_its_share(self, hosts: list[Dataset]) -> None:
        """A single rank needs no information about other hosts."""
        part = hosts[0].where("label < 5").select(range(4))
        assert sorted(dataprep.to_torch(part, iterable=True)) == sorted(stored_samples(part))

    def test_workers_divide_what_a_rank_reads(self, hosts: list[Dataset]) -> None:
        """The reader can be pickled, and knows its steps afterwards."""
        parts = [host.where("label < 5") for host in hosts]
        reader = self.readers(parts, even="drop", iterable=True)[2]
        copy = pickle.loads(pickle.dumps(reader))
        assert copy.state_dict() == reader.state_dict()
        assert images_of_batches(copy) == images_of_batches(reader)

    def test_numbers_are_refused(self, hosts: list[Dataset]) -> None:
        """``select`` counts in the share, so that samples of other hosts are unknown."""
        parts = [host.where("label < 5").select(range(4)) for host in hosts]
        with pytest.raises(ConfigError, match="4 ranks cannot read this subset of a host's share"):
            self.readers(parts)

    def test_a_share_without_a_sample_is_refused_on_all_hosts(
        self, dataset: Dataset, hosts: list[Dataset]
    ) -> None:
        """The host without samples fails in ``where``, the others when ranks divide the subset."""
        name = hosts[1].written["source"][0]
        query = f"source == {name!r}"
        with pytest.raises(ConfigError, match="none of the"):
            hosts[0].where(query)
        with pytest.raises(ConfigError, match="share 0 of 2 has no sample of the subset"):
            dataprep.to_torch(hosts[1].where(query), rank=2, world_size=4)

    def test_a_share_of_an_earlier_version(
        self, dataset: Dataset, hosts: list[Dataset], tmp_path: Path
    ) -> None:
        """A share without a table of the split: several ranks are refused; ``stage`` adds it."""
        folder = tmp_path / "share"
        shutil.copytree(hosts[0].store.uri, folder)
        (folder / "train.whole-samples.parquet").unlink()
        manifest = json.loads((folder / "train.manifest.json").read_bytes())
        del manifest["share"]["table"], manifest["share"]["shards"]
        (folder / "train.manifest.json").write_text(json.dumps(manifest))
        parts = [dataprep.open(folder).where("label < 5")] * 2
        with pytest.raises(ConfigError, match=r"with dataset\.where, in a share that this version"):
            self.readers(parts)
        (staged,) = stage(dataset.store.uri, folder, host=dataprep.Part(0, 2))
        assert staged.copied_bytes == 0
        mended = [dataprep.open(folder).where("label < 5"), hosts[1].where("label < 5")]
        subset = dataset.where("label < 5")
        assert sum(len(images_of_batches(reader)) for reader in self.readers(mended)) == len(subset)

    @pytest.mark.parametrize("damage", ["missing", "changed"])
    def test_a_damaged_table_is_noticed(
        self, dataset: Dataset, hosts: list[Dataset], tmp_path: Path, damage: str
    ) -> None:
        """Reading and ``verify`` name a damaged table, and ``stage`` copies a missing one again."""
        folder = tmp_path / "share"
        shutil.copytree(hosts[0].store.uri, folder)
        table = folder / "train.whole-samples.parquet"
        content = table.read_bytes()
        table.unlink()
        if damage == "changed":
            table.write_bytes(content[:-1] + b"x")
        part = dataprep.open(folder).where("label < 5")
        with pytest.raises(
            DatasetError, match=r"train\.whole-samples\.parquet: missing or damaged"
        ):
            self.readers([part, part])
        (verification,) = dataprep.verify(folder)
        assert [fault.key for fault in verification.faults] == [table.name]
        table.unlink(missing_ok=True)
        stage(dataset.store.uri, folder, host=dataprep.Part(0, 2))
        assert table.read_bytes() == content
        assert all(verified.ok for verified in dataprep.verify(folder))


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("tf")
def test_tensorflow(part: Dataset) -> None:
    """``to_tf`` reads exactly the subset, with its length."""
    batches = dataprep.to_tf(part, decode=False)
    samples = [(image, int(label)) for image, label in batches.as_numpy_iterator()]
    assert sorted(samples) == sorted(stored_samples(part))
    assert len(batches) == len(part)


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("mx")
def test_mxnet(output: Path) -> None:
    """``to_mxnet`` reads exactly the subset."""
    part = dataprep.open(output, format="recordio").where(QUERY)
    batches = dataprep.to_mxnet(
        part, batch_size=8, augmentation=dataprep.Augmentation(size=32), threads=1
    )
    labels = [int(label) for batch in batches for label in batch.label[0].asnumpy()]
    assert sorted(labels) == sorted(part.labels.tolist())
