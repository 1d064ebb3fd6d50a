"""WebDataset tars are a source of samples with classes, or are refused."""

from __future__ import annotations

import json
import lzma
import pickle
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from dataprep.errors import (
    ConfigError,
    CorruptArchive,
    NotAnArchive,
    SourceError,
    TruncatedArchive,
)
from dataprep.sources.options import WebDatasetOptions
from dataprep.sources.protocol import Listing, Problem
from dataprep.sources.webdataset import WebDataset
from dataprep.sources.webdataset_samples import (
    NO_EXTENSION,
    NO_IMAGE,
    OTHER_EXTENSION,
    REPEATED,
    SEVERAL,
)
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.servers.fault_proxy import FaultProxy
from iobench.servers.moto_server import MotoServer
from tests.commandline import Finished, in_process
from tests.small_photos import jpeg
from tests.source_folders import reads_of, shard_folder, write_files
from tests.tars import tar_of, zipped

pytestmark = pytest.mark.usefixtures("own_cache")

IMAGE = b"\xff\xd8image"


def source_of(folder: Path, tars: Mapping[str, bytes], **options: str) -> WebDataset:
    """A folder of tars as a source."""
    section = WebDatasetOptions.model_validate(options)
    return WebDataset(write_files(folder / "tars", tars), None, section)


def one_tar(folder: Path, members: Mapping[str, bytes], **options: str) -> Listing:
    """The listing of a single tar with these members."""
    path = folder / "one.tar"
    path.write_bytes(tar_of(members))
    return WebDataset(str(path), None, WebDatasetOptions.model_validate(options)).list()


def labelled(*labels: object, ending: str = "cls") -> dict[str, bytes]:
    """The members of one sample for each label."""
    members = {}
    for number, label in enumerate(labels):
        members[f"{number:03}.jpg"] = IMAGE
        members[f"{number:03}.{ending}"] = (
            label if isinstance(label, bytes) else str(label).encode()
        )
    return members


def with_json(*facts: object) -> dict[str, bytes]:
    """The members of one sample for each JSON object."""
    return labelled(*[json.dumps(fact) for fact in facts], ending="json")


def classes(listing: Listing) -> list[str]:
    """The class of each sample, in the order of their names."""
    return [listing.classes[row] for row in range(len(listing)) if row not in listing.problems]


def reasons(listing: Listing) -> dict[str, str]:
    """The problems of rows that are no samples, by name."""
    return {listing.names[row]: problem.reason for row, problem in listing.problems.items()}


def numbered(listing: Listing) -> list[str]:
    """The classes in the order of their labels, if the source numbers them."""
    assert listing.label_space is not None
    return [*listing.label_space.index]


class TestClasses:
    def test_numbers_are_labels_as_in_the_file(self, tmp_path: Path) -> None:
        """Numbers are labels, with blanks and zeros around them, and with gaps between them."""
        listing = one_tar(tmp_path, labelled("0", "3\n", " 10 ", "003", b"\xef\xbb\xbf1"))
        assert classes(listing) == ["0", "3", "10", "3", "1"]
        assert numbered(listing) == [str(number) for number in range(11)]

    def test_names_are_numbered_in_their_order(self, tmp_path: Path) -> None:
        """Names are classes, and their labels follow their order."""
        listing = one_tar(tmp_path, labelled("tabby", "tench\n", "Échidna", "tabby"))
        assert classes(listing) == ["tabby", "tench", "Échidna", "tabby"]
        assert listing.label_space is None

    def test_numbers_and_names_together_are_refused(self, tmp_path: Path) -> None:
        """The refusal shows a sample of each, and a remedy."""
        with pytest.raises(SourceError) as refusal:
            one_tar(tmp_path, labelled("0", "tabby"))
        assert "'000.jpg' has the number 0" in str(refusal.value)
        assert "'001.jpg' the name 'tabby'" in str(refusal.value)
        assert "--exclude '*.cls'" in str(refusal.value)

    def test_a_file_may_name_numbers(self, tmp_path: Path) -> None:
        """``webdataset.class_names`` gives names to numbers, which stay labels."""
        (tmp_path / "names.txt").write_text("ant\nbee\ncat\n")
        names = str(tmp_path / "names.txt")
        listing = one_tar(tmp_path, labelled(2, 0, 3), class_names=names)
        assert classes(listing) == ["cat", "ant"]
        assert numbered(listing) == ["ant", "bee", "cat"]
        assert reasons(listing) == {"002.jpg": "label 3 has no name in class_names"}

    def test_no_class_at_all(self, tmp_path: Path) -> None:
        """Samples without ``.cls``, or with -1 in each, have no class, and a note says so."""
        bare = one_tar(tmp_path, labelled({}, ending="json"))
        assert classes(bare) == [""]
        assert not any("webdataset.label" in note for note in bare.notes)
        hinted = one_tar(tmp_path, with_json({"width": 3, "kind": "cat"}))
        assert "have the keys 'width', 'kind': --set webdataset.label=KEY" in hinted.notes[0]
        assert classes(one_tar(tmp_path, labelled(-1, -1))) == ["", ""]

    def test_a_negative_number_beside_others_fails(self, tmp_path: Path) -> None:
        """-1 is no label if other samples have one."""
        listing = one_tar(tmp_path, labelled(0, -1))
        assert reasons(listing) == {"001.jpg": "label -1 is no class: classes count from 0"}

    @pytest.mark.parametrize(
        ("facts", "expected"),
        [
            ([{"label": 2, "x": [1]}, {"label": 0}, {"label": 1.0}], ["2", "0", "1"]),
            ([{"label": "cat"}, {"label": " dog "}], ["cat", "dog"]),
        ],
    )
    def test_json_has_numbers_or_names(
        self, tmp_path: Path, facts: list[object], expected: list[str]
    ) -> None:
        """``webdataset.label`` names the key, whose value counts like a ``.cls``."""
        members = with_json(*facts) | {"000.cls": b"7"}
        listing = one_tar(tmp_path, dict(sorted(members.items())), label="label")
        assert classes(listing) == expected

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"{", "its .json is no JSON"),
            (b"\xff\xfe{", "its .json is no JSON"),
            (b"[" * 4000, "its .json is no JSON"),
            (b"[1]", "its .json is no JSON object"),
            (b'{"lable": 1}', "its .json has no key 'label' (webdataset.label)"),
            (b'{"label": null}', "'label' of its .json is no whole number and no text"),
            (b'{"label": true}', "'label' of its .json is no whole number and no text"),
            (b'{"label": [1]}', "'label' of its .json is no whole number and no text"),
            (b'{"label": 1.5}', "'label' of its .json is no whole number and no text"),
            (b'{"label": "\\ud800"}', "'label' of its .json has several lines or control"),
            (b'{"label": ""}', "'label' of its .json is empty"),
            (
                b'{"label": "%s"}' % (b"9" * 4900),
                "'label' of its .json has more than 1,000 characters",
            ),
        ],
    )
    def test_json_without_a_class_fails(self, tmp_path: Path, content: bytes, reason: str) -> None:
        """The sample fails with the reason, and the others do not."""
        members = labelled(b'{"label": 1}', content, ending="json")
        listing = one_tar(tmp_path, members, label="label")
        assert classes(listing) == ["1"]
        assert reasons(listing)["001.jpg"].startswith(reason)

    def test_large_json_is_read_from_the_tar(self, tmp_path: Path) -> None:
        """An index has members below 4 KiB. Larger JSON is read, up to 1 MiB."""
        facts = [{"label": n, "text": "x" * size} for n, size in enumerate((9, 4096, 2**20))]
        for tars in (
            {"a.tar": tar_of(with_json(*facts))},
            {"a.tgz": zipped(tar_of(with_json(*facts)))},
        ):
            folder = tmp_path / next(iter(tars))
            listing = source_of(folder, tars, label="label").list()
            assert classes(listing) == ["0", "1"]
            assert reasons(listing) == {"a/002.jpg": "its .json has 1,024 KiB or more"}


class TestSamples:
    @pytest.mark.parametrize(
        ("more", "expected"),
        [
            ({"1.jpg": IMAGE, "1.cls": b""}, {"1.jpg": "its .cls is empty"}),
            ({"1.jpg": IMAGE, "1.cls": b" \n"}, {"1.jpg": "its .cls is empty"}),
            ({"1.jpg": IMAGE, "1.cls": b"\xff\xfe"}, {"1.jpg": "its .cls is no UTF-8 text"}),
            (
                {"1.jpg": IMAGE, "1.cls": b"0\n1\n"},
                {"1.jpg": "its .cls has several lines or control characters"},
            ),
            ({"1.jpg": IMAGE, "1.cls": b"9" * 4096}, {"1.jpg": "its .cls has 4 KiB or more"}),
            ({"1.jpg": IMAGE}, {"1.jpg": "the sample has no .cls, which gives the class"}),
            ({"1.cls": b"0", "1.txt": b""}, {"1.cls": NO_IMAGE}),
            ({"1.cls": b"0", "1.bmp": IMAGE}, {"1.bmp": OTHER_EXTENSION}),
            ({"1.jpg": IMAGE, "1.png": IMAGE, "1.cls": b"0"}, {"1.jpg": SEVERAL, "1.png": SEVERAL}),
            (
                {"a.1.jpg": IMAGE, "a.2.jpg": IMAGE},
                dict.fromkeys(["a.1.jpg", "a.2.jpg"], OTHER_EXTENSION),
            ),
            ({"README": b"words"}, {"README": NO_EXTENSION}),
            ({"._0.jpg": IMAGE}, {"._0.jpg": "hidden or system file"}),
            (
                {"1.jpg": IMAGE, "2.jpg": IMAGE, "2.cls": b"0", "1.cls": b"0"},
                {"1.jpg": REPEATED, "1.cls": REPEATED},
            ),
            (
                {"../1.jpg": IMAGE, "../1.cls": b"0"},
                {"../1.jpg": "member whose path leads out of the archive"},
            ),
        ],
        ids=str,
    )
    def test_that_are_none_have_a_reason(
        self, tmp_path: Path, more: dict[str, bytes], expected: dict[str, str]
    ) -> None:
        """A member that could be a sample and is none is a row, and valid samples are kept."""
        listing = one_tar(tmp_path, {"0.jpg": IMAGE, "0.cls": b"0", **more})
        assert reasons(listing) == expected
        assert {listing.names[row] for row in range(len(listing))} >= {"0.jpg", *expected}
        assert "0" in classes(listing)

    def test_of_one_key_in_a_row_all_fail(self, tmp_path: Path) -> None:
        """Two consecutive samples of one key both fail, and their members are not mixed."""
        first = tar_of({"a.jpg": b"1", "a.cls": b"0"})[: 4 * 512]
        second = tar_of({"a.jpg": b"2", "a.cls": b"1", "b.jpg": b"3", "b.cls": b"1"})
        path = tmp_path / "twice.tar"
        path.write_bytes(first + second)
        listing = WebDataset(str(path)).list()
        assert list(listing.names) == ["a.jpg", "a.jpg", "b.jpg"]
        assert [*listing.problems.values()] == [Problem("failed", REPEATED)] * 2
        assert classes(listing) == ["1"]

    def test_split_at_the_first_dot(self, tmp_path: Path) -> None:
        """The key ends at the first dot of the base name. Extensions have any case."""
        members = {
            "v1.0/0.JPG": IMAGE,
            "v1.0/0.seg.png": b"mask",
            "v1.0/0.cls": b"4",
            "v1.0/1.webp": IMAGE,
            "v1.0/1.CLS": b"5",
            "v1.0/2.jpeg": IMAGE,
            "v1.0/2.cls": b"6",
        }
        listing = one_tar(tmp_path, members)
        assert list(listing.names) == ["v1.0/0.JPG", "v1.0/1.webp", "v1.0/2.jpeg"]
        assert classes(listing) == ["4", "5", "6"]
        assert "not used: 1 member beside the images (1 .seg.png)" in listing.notes

    def test_other_members_are_counted(self, tmp_path: Path) -> None:
        """Members without image and class are no rows, and a note counts each kind."""
        members = labelled(0, 1) | with_json({}, {}) | {"000.a\udcff": b"words"}
        listing = one_tar(tmp_path, dict(sorted(members.items())))
        assert len(listing) == 2
        assert "not used: 3 members beside the images (2 .json, 1 .a\\xff)" in listing.notes

    def test_exclusions_come_first(self, tmp_path: Path) -> None:
        """An excluded member is no part of a sample, which may decide between two images."""
        members = labelled(0, 1) | {"000.png": IMAGE, "000.txt": b""}
        source = source_of(tmp_path, {"a.tar": tar_of(dict(sorted(members.items())))})
        source.leave_out(("*.png", "*.txt"))
        listing = source.list()
        assert classes(listing) == ["0", "1"]
        assert reasons(listing) == {"a/000.png": "excluded by '*.png'"}
        assert listing.left_out == ("a/000.txt",)

    def test_keep_the_order_of_the_tars(self, tmp_path: Path) -> None:
        """Without shuffling, samples follow the order of the tars and of their names."""
        members = {"9.jpg": b"9", "9.cls": b"0", "10.jpg": b"10", "10.cls": b"0"}
        listing = source_of(
            tmp_path,
            {"a-1.tar": tar_of(members), "a-0.tar": tar_of({"5.jpg": b"5", "5.cls": b"0"})},
        ).list()
        assert listing.order is not None
        in_order = [listing.names[row] for row in listing.order.tolist()]
        assert in_order == ["a-0/5.jpg", "a-1/9.jpg", "a-1/10.jpg"]


class TestTars:
    def test_cut_short(self, tmp_path: Path) -> None:
        """A tar that ends inside a member is refused, compressed or not."""
        data = tar_of(labelled(0, 1))
        with pytest.raises(TruncatedArchive, match="ends at byte"):
            source_of(tmp_path / "a", {"t.tar": data[: 5 * 512 + 100]}).list()
        with pytest.raises((TruncatedArchive, CorruptArchive)):
            source_of(tmp_path / "b", {"t.tar.gz": zipped(data)[:90]}).list()

    @pytest.mark.parametrize(
        ("name", "glob"),
        [("b.tar", "b.tar"), ("b.tar.xz", "b.tar.xz"), ("[a].tar", "[[]a].tar")],
    )
    def test_that_cannot_be_read(self, tmp_path: Path, name: str, glob: str) -> None:
        """A file that is named like a tar and is none ends the job, unless it is excluded."""
        data = lzma.compress(tar_of(labelled(1))) if name.endswith("xz") else b"<html>"
        tars = {"a.tar": tar_of(labelled(0)), name: data, "sizes.json": b"{}"}
        source = source_of(tmp_path, tars)
        message = f"{re.escape(name)}: .*would be missing.*--exclude '?{re.escape(glob)}"
        with pytest.raises(SourceError, match=message):
            source.list()
        source.leave_out((glob,))
        listing = source.list()
        assert classes(listing) == ["0"]
        assert {*reasons(listing)} == {name, "sizes.json"}
        with pytest.raises(NotAnArchive):
            WebDataset(str(tmp_path / "tars" / name)).list()

    def test_compressed(self, tmp_path: Path) -> None:
        """gzip is read as in other archives, also by a copy in a worker. An empty tar is noted."""
        tars = {"a.tar.gz": zipped(tar_of(labelled(0, 1))), "b.tar": tar_of({})}
        source = source_of(tmp_path, tars)
        listing = source.list()
        assert classes(listing) == ["0", "1"]
        assert "1 archive without members: 'b.tar'" in listing.notes
        copy = pickle.loads(pickle.dumps(source))
        assert copy.read(listing.located(0)) == IMAGE

    def test_empty_tars_within_a_tar_are_reported(self, tmp_path: Path) -> None:
        """Each has a reason, also if several follow each other, and the samples are kept."""
        empty = tar_of({})
        listing = one_tar(tmp_path, {"a.tar": empty, "b.tar": empty, **labelled(0)})
        assert classes(listing) == ["0"]
        reason = "a tar that holds no files"
        assert reasons(listing) == {"a.tar": reason, "b.tar": reason}

    def test_whose_index_cannot_be_stored(self, tmp_path: Path) -> None:
        """Workers need the index of a compressed tar, and the message names the key to set."""
        (tmp_path / "blocked").write_bytes(b"")
        tars = {"a.tar.gz": zipped(tar_of(labelled(0)))}
        source = source_of(tmp_path, tars, cache=str(tmp_path / "blocked/cache"))
        with pytest.raises(ConfigError, match=r"--set webdataset\.cache=FOLDER"):
            source.list()

    def test_of_equal_names_are_refused(self, tmp_path: Path) -> None:
        """A tar and its compressed copy would give each sample twice, and are refused."""
        data = tar_of(labelled(0))
        with pytest.raises(SourceError, match=r"a\.tar and a\.tar\.gz both.*--exclude a\.tar\.gz"):
            source_of(tmp_path, {"a.tar": data, "a.tar.gz": zipped(data)}).list()
        with pytest.raises(SourceError, match=r"as in --exclude '\[\[\]a\]\.tar\.gz'"):
            source_of(tmp_path / "2", {"[a].tar": data, "[a].tar.gz": zipped(data)}).list()

    @pytest.mark.parametrize(
        "names",
        [
            ("in1k-train-0000.tar", "in1k-train-0001.tar", "in1k-validation-00.tar"),
            ("train/0.tar", "train/1.tar", "val/0.tar"),
            ("valet-train-0.tar", "valet-train-1.tar", "val2017.tar"),
            ("train/[0].tar", "train/[1].tar", "val/[0].tar"),
            ("train.[0].tar", "train.[1].tar", "val.[0].tar"),
        ],
    )
    def test_of_several_splits_are_refused(self, tmp_path: Path, names: tuple[str, ...]) -> None:
        """Each command of the refusal reads one split."""
        tars = {name: tar_of(labelled(number)) for number, name in enumerate(names)}
        source = source_of(tmp_path, tars)
        with pytest.raises(SourceError, match="tars of different splits") as refusal:
            source.list()
        lines = str(refusal.value).splitlines()
        for split, counts in (("train", 2), ("validation", 1)):
            (line,) = [line for line in lines if f"--split {split} " in line]
            glob = line.split("--exclude ")[1].split(" ")[0].strip("'")
            source.leave_out((glob,))
            assert len(classes(source.list())) == counts
        source.leave_out(())
        source.read_splits_as_classes()
        assert len(classes(source.list())) == 3


@pytest.mark.slow
def test_a_sample_costs_one_request(tmp_path: Path, bucket: str, s3_server: MotoServer) -> None:
    """With an index, listing reads no tar, and each sample is one GET of its bytes."""
    images = {f"{number:03}.jpg": bytes([number]) * 3000 for number in range(20)}
    members: dict[str, bytes] = {}
    for name, data in images.items():
        members |= {name: data, name.replace("jpg", "json"): b'{"label": %d}' % data[0]}
    store = S3Store(f"s3://{bucket}/wds", StoreOptions(endpoint_url=s3_server.url))
    store.put("a-000.tar", tar_of(members))
    with FaultProxy(s3_server.url) as proxy:
        options = StoreOptions(endpoint_url=proxy.url)
        section = WebDatasetOptions(label="label")
        WebDataset(store.uri, options, section).list()
        before = reads_of(proxy, "a-000.tar")
        source = WebDataset(store.uri, options, section)
        listing = source.list()
        assert reads_of(proxy, "a-000.tar") == before
        read = [source.read(listing.located(row)) for row in range(20)]
        assert reads_of(proxy, "a-000.tar") == before + 20
    assert read == [*images.values()]
    assert classes(listing) == [str(number) for number in range(20)]


def shard(folder: Path, *more: str, code: int) -> Finished:
    """Shard the folder of tars."""
    return shard_folder("webdataset", folder / "tars", *more, code=code)


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Two tars with numbers, and facts in JSON."""
        tars = {}
        for tar in range(2):
            members = {}
            for number in range(4 * tar, 4 * tar + 4):
                members[f"{number:03}.jpg"] = jpeg(number)
                members[f"{number:03}.cls"] = str(number % 3).encode()
                members[f"{number:03}.json"] = json.dumps({"kind": f"k{number % 2}"}).encode()
            tars[f"photos-{tar:03}.tar"] = tar_of(members)
        source_of(tmp_path, tars)
        return tmp_path

    def test_says_what_was_understood(self, folder: Path) -> None:
        """The first line names the kind and the labels, and verify finds no fault."""
        done = shard(folder, code=0)
        assert "WebDataset tars, 3 classes, 8 images; labels 0 to 2 in numeric order" in done.out
        assert "not used: 8 members beside the images (8 .json)" in done.out
        assert in_process("verify", folder / "out", "--deep").code == 0

    def test_can_be_planned(self, folder: Path) -> None:
        """``plan`` has the same understanding and writes nothing."""
        job = ("--kind", "webdataset", "--source", str(folder / "tars"))
        done = in_process("plan", *job, "--output", folder / "out", code=0)
        assert "WebDataset tars, 3 classes, 8 images; labels 0 to 2 in numeric order" in done.out
        assert not (folder / "out").exists()

    def test_takes_classes_from_json(self, folder: Path) -> None:
        """``webdataset.label`` is a key of configs."""
        done = shard(folder, "--set", "webdataset.label=kind", code=0)
        assert "2 classes, 8 images; labels 0 to 1 in the order of names" in done.out

    def test_takes_classes_from_a_file(self, folder: Path) -> None:
        """A ground truth names samples by their key, and takes precedence."""
        (folder / "truth.csv").write_text("".join(f"{n:03},c{n % 4}\n" for n in range(8)))
        truth = f"labels.ground_truth={folder}/truth.csv"
        done = shard(folder, "--exclude", "*.cls", "--set", truth, code=0)
        assert "4 classes, 8 images" in done.out

    def test_unlabelled(self, folder: Path) -> None:
        """Classes in the tars contradict --unlabelled, and the message says how to ignore them."""
        refusal = shard(folder, "--unlabelled", code=2)
        assert "--exclude '*.cls'" in refusal.complaints[0]
        assert not (folder / "out").exists()
        done = shard(folder, "--unlabelled", "--exclude", "*.cls", code=0)
        assert "8 images; no labels" in done.out

    def test_without_classes(self, folder: Path) -> None:
        """Tars without ``.cls`` are refused with the keys of their JSON."""
        refusal = shard(folder, "--exclude", "*.cls", code=2)
        assert "have the keys 'kind': --set webdataset.label=KEY" in refusal.complaints[0]

    def test_a_changed_class_is_a_changed_source(self, folder: Path) -> None:
        """A job with changed classes is refused, and an unchanged one is resumed."""
        shard(folder, code=0)
        assert "nothing to do" in shard(folder, code=0).out + shard(folder, code=0).err
        path = folder / "tars/photos-000.tar"
        path.write_bytes(path.read_bytes().replace(b"2" + bytes(511), b"0" + bytes(511), 1))
        assert "source" in shard(folder, code=2).complaints[0]
