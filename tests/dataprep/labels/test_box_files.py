"""Bounding boxes are read from XML, tars and CSV, and matched to their images."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError, SourceError, SourceNotFound
from dataprep.job.planning import list_annotation_files
from dataprep.labels.box_files import (
    Annotation,
    Annotations,
    find_boxes,
    parse_csv,
    parse_xml,
    read_annotations,
)
from dataprep.labels.boxes import BoxColumns
from dataprep.labels.options import BoxOptions
from dataprep.stores import StoreOptions, open_store
from iobench.servers.moto_server import MotoServer
from tests.strategies import mutated

CLASSES = {"cat": 0, "dog": 1}
ANNOTATION = (
    "<annotation><size><width>{width}</width><height>30</height></size><object><name>c</name>"
    "<bndbox><xmin>{xmin}</xmin><ymin>2</ymin><xmax>9</xmax><ymax>10</ymax></bndbox></object>"
    "</annotation>"
)
FILES = {
    f"Annotation/n0000000{i % 3}/n0000000{i % 3}_{i}.xml": ANNOTATION.format(
        width=20 + i, xmin=i
    ).encode()
    for i in range(7)
}
WIDTHS = {name: 20 + i for i, name in enumerate(FILES)}


def tar_of(files: dict[str, bytes], mode: str = "w") -> bytes:
    """A tar of these files, with folders."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode=mode) as tar:  # type: ignore[call-overload]
        folder = tarfile.TarInfo("Annotation")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return sink.getvalue()


def recompressed(data: bytes, mode: str) -> bytes:
    """``data`` compressed as by this mode of ``tarfile``."""
    if mode == "w:gz":
        return gzip.compress(data)
    if mode == "w:bz2":
        return bz2.compress(data)
    return lzma.compress(data) if mode == "w:xz" else data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of annotations among other files."""
    for name, data in FILES.items():
        path = tmp_path / "boxes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tmp_path / "boxes" / "README").write_text("boxes")
    (tmp_path / "boxes" / "Annotation" / "._n00000000_0.xml").write_bytes(b"\0\5\x16\7")
    return tmp_path / "boxes"


def widths(source: str | Path, store: StoreOptions | None = None) -> dict[str, int]:
    """The image width of each annotation, by path."""
    boxes = read_annotations(BoxOptions(source=str(source)), store)
    return {path: drawn.width for path, drawn in boxes}


class TestPlaces:
    def test_folders_and_archives(self, folder: Path, tmp_path: Path) -> None:
        """XML files are read below a folder, in compressed or plain tars, and in tars of a tar."""
        names = sorted({name.split("/")[1] for name in FILES})
        inner = {
            f"Annotation/{n}.tar.gz": tar_of({k: v for k, v in FILES.items() if n in k}, "w:gz")
            for n in names
        }
        (tmp_path / "nested.tar").write_bytes(tar_of(inner))
        (tmp_path / "b.tar").write_bytes(tar_of(FILES))
        for name in ("b.tar.gz", "b.tgz"):
            (tmp_path / name).write_bytes(tar_of(FILES, "w:gz"))
        assert widths(folder) == widths(f"{folder}/") == WIDTHS
        for name in ("nested.tar", "b.tar", "b.tar.gz", "b.tgz"):
            assert widths(tmp_path / name) == WIDTHS

    def test_links_are_followed_as_in_sources(self, folder: Path, tmp_path: Path) -> None:
        """A folder of links to annotations gives all their boxes."""
        subset = tmp_path / "subset"
        (subset / "more").mkdir(parents=True)
        (subset / "n00000000").symlink_to("../boxes/Annotation/n00000000")
        (subset / "more" / "one.xml").symlink_to(folder / "Annotation/n00000001/n00000001_1.xml")
        (subset / "here").symlink_to(".")
        options = BoxOptions(source=str(subset))
        boxes = read_annotations(options, None, list_annotation_files)
        expected = {"more/one.xml": 21}
        for name, width in WIDTHS.items():
            if "n00000000" in name:
                expected[name.removeprefix("Annotation/")] = width
        assert {path: drawn.width for path, drawn in boxes} == expected

    @pytest.mark.parametrize("name", ["n00000009", "n00000001/gone.xml"])
    def test_links_to_nothing_are_refused(self, folder: Path, name: str) -> None:
        """A dangling link is refused, because boxes would be missing. A hidden one is ignored."""
        (folder / "Annotation" / ".hidden").symlink_to("nowhere")
        options = BoxOptions(source=str(folder))
        assert len(read_annotations(options, None, list_annotation_files)) == len(WIDTHS)
        (folder / "Annotation" / name).symlink_to("nowhere")
        with pytest.raises(SourceError, match=f"{name} of boxes.source: broken symlink"):
            read_annotations(options, None, list_annotation_files)

    def test_links_that_are_not_followed_are_refused(self, folder: Path, tmp_path: Path) -> None:
        """Links are refused if a folder is listed without following them, as for an output."""
        (tmp_path / "subset").mkdir()
        (tmp_path / "subset" / "some").symlink_to(folder / "Annotation")
        with pytest.raises(SourceError, match=r"some of boxes\.source: symlink that leaves"):
            widths(tmp_path / "subset")

    def test_s3(self, bucket: str, s3_server: MotoServer) -> None:
        """Objects below a prefix, and one archive, are read with the endpoint of the images."""
        options = StoreOptions(endpoint_url=s3_server.url)
        store = open_store(f"s3://{bucket}/x", options)
        for name, data in FILES.items():
            store.put(name, data)
        store.put("boxes.tar", tar_of(FILES))
        below = {name.removeprefix("Annotation/"): width for name, width in WIDTHS.items()}
        assert widths(f"s3://{bucket}/x/Annotation", options) == below
        assert widths(f"s3://{bucket}/x/boxes.tar", options) == WIDTHS

    @pytest.mark.parametrize(
        ("name", "kind"), [("b.csv", "auto"), ("b.csv.gz", "auto"), ("b.dat", "csv")]
    )
    def test_a_csv_file(self, tmp_path: Path, name: str, kind: Any) -> None:
        """The name of a file, or the config, decides that it is CSV, compressed or not."""
        data = b"a.jpg,0,0,1,1\n"
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        boxes = read_annotations(BoxOptions(source=str(tmp_path / name), format=kind))
        assert boxes == [("a.jpg", Annotation(1, 1, [("", (0, 0, 1, 1))]))]

    @pytest.mark.parametrize(
        ("data", "why"),
        [(b"<annotation>", "not XML"), (b"<html/>", "<html> is not an annotation")],
    )
    def test_a_broken_file_is_named(self, folder: Path, data: bytes, why: str) -> None:
        """The error has the path, the reason and a remedy."""
        (folder / "bad.xml").write_bytes(data)
        with pytest.raises(
            SourceError, match=rf"'bad\.xml' of boxes\.source: {why}.*repair or remove"
        ):
            read_annotations(BoxOptions(source=str(folder)))

    @pytest.mark.parametrize("name", ["", "none", "none.csv", "none.tar"])
    def test_nothing_there(self, tmp_path: Path, name: str) -> None:
        """A folder without XML, and a missing folder or file, are errors."""
        with pytest.raises(SourceNotFound, match="no boxes at"):
            read_annotations(BoxOptions(source=str(tmp_path / name)))

    @pytest.mark.parametrize("name", ["b.tar.gz", "b.csv.gz"])
    @pytest.mark.parametrize("damage", ["cut", "other"])
    def test_a_damaged_archive(self, tmp_path: Path, damage: str, name: str) -> None:
        """A damaged archive is an error, and is not read as a smaller one."""
        data = tar_of(FILES, "w:gz")
        path = tmp_path / name
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else b"no archive" * 100)
        with pytest.raises(SourceError, match=r"b\..* is a damaged archive"):
            read_annotations(BoxOptions(source=str(path)))

    @pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
    def test_no_box_is_lost_in_a_damaged_tar(self, tmp_path: Path, mode: str) -> None:
        """A tar that is damaged or cut between or inside headers, or has a second tar, is refused.

        A tar inside another tar is refused, too.
        """
        data = tar_of(FILES)
        header = data.index(b"Annotation/n00000000/n00000000_3.xml")
        damaged = {
            "overwritten": data[:header] + b"\xff" * 512 + data[header + 512 :],
            "cut inside": data[: header + 100],
            "cut between": data[:header],
            "two": data + data,
        }
        outer_path, path = tmp_path / "outer.tar", tmp_path / "b.tar"
        for content in damaged.values():
            path.write_bytes(recompressed(content, mode))
            outer_path.write_bytes(tar_of({"inner.tar.gz": recompressed(content, mode)}))
            for tar in (path, outer_path):
                with pytest.raises(SourceError, match=r"damaged archive.* at byte .*fetch"):
                    read_annotations(BoxOptions(source=str(tar)))

    @pytest.mark.parametrize("zeros", [4, 8, 512, 2**21])
    @pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
    def test_zeros_after_a_tar_are_padding(self, tmp_path: Path, mode: str, zeros: int) -> None:
        """Zeros after the compressed data, which the format of xz allows, are ignored."""
        path = tmp_path / "b.tar"
        path.write_bytes(tar_of(FILES, mode) + bytes(zeros))
        assert widths(path) == WIDTHS

    @pytest.mark.parametrize("rest", [b"x", b"more text", bytes(8) + b"text" * 10_000])
    def test_bytes_after_gzip_data_are_ignored(self, tmp_path: Path, rest: bytes) -> None:
        """Bytes after the data are ignored, as by gzip, but a wrong checksum is an error."""
        path = tmp_path / "b.tar.gz"
        data = tar_of(FILES, "w:gz")
        path.write_bytes(data + rest)
        assert widths(path) == WIDTHS
        path.write_bytes(data[:-8] + bytes(4) + data[-4:] + rest)
        with pytest.raises(SourceError, match="damaged archive"):
            widths(path)

    @pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
    def test_two_tars_in_a_row_are_named_as_such(self, tmp_path: Path, mode: str) -> None:
        """The error says that data follow the end marker, and how to unpack both tars."""
        path = tmp_path / "b.tar"
        data = tar_of(FILES)
        path.write_bytes(recompressed(data + data, mode))
        message = r"more than padding follows its end marker at byte [\d,]+: .*--ignore-zeros"
        with pytest.raises(SourceError, match=message):
            widths(path)

    @pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
    def test_damage_of_compressed_data_is_an_error(self, tmp_path: Path, mode: str) -> None:
        """Wherever a byte of a compressed tar is changed, no box is lost without an error."""
        path = tmp_path / "b.tar"
        data = tar_of(FILES, mode)
        for position in range(64, len(data), 16):
            changed = bytearray(data)
            changed[position] ^= 0xFF
            path.write_bytes(changed)
            with contextlib.suppress(SourceError):
                assert widths(path) == WIDTHS


ILSVRC = b"""<annotation>
	<folder>n02092002</folder>
	<filename>%s</filename>
	<source><database>ILSVRC_2012</database></source>
	<size><width>500</width><height>375</height><depth>3</depth></size>
	<segmented>0</segmented>
	<object>
		<name>n02092002</name><pose>Unspecified</pose><truncated>0</truncated>
		<bndbox><xmin>5</xmin><ymin>12</ymin><xmax>400</xmax><ymax>300</ymax></bndbox>
	</object>
	<object>
		<name>Scottish_deerhound</name>
		<bndbox><xmin>70.5</xmin><ymin>2</ymin><xmax>60</xmax><ymax>390</ymax></bndbox>
	</object>
</annotation>"""
NO_BOXES = Annotation(0, 0, [])
LAUGHS = b"".join(b'<!ENTITY l%d "%s">' % (i, b"&l%d;" % (i - 1) * 10) for i in range(1, 10))


class TestXml:
    def test_boxes_of_one_image(self) -> None:
        """The size, all sides as stored, and all names are read in the order of the file."""
        assert parse_xml(ILSVRC) == Annotation(
            500,
            375,
            [
                ("n02092002", (5.0, 12.0, 400.0, 300.0)),
                ("Scottish_deerhound", (70.5, 2.0, 60.0, 390.0)),
            ],
        )

    def test_an_image_without_objects_has_no_boxes(self) -> None:
        """An annotation may have no objects, and nested elements are harmless."""
        assert parse_xml(b"<annotation/>") == NO_BOXES
        tower = b"<annotation>" + b"<a>" * 50_000 + b"</a>" * 50_000 + b"</annotation>"
        assert parse_xml(tower) == NO_BOXES

    @pytest.mark.parametrize(
        "size",
        [
            b"",
            b"<size/>",
            b"<size><width>5</width></size>",
            b"<size><width/><height>5</height></size>",
            b"<size><width>0</width><height>0</height></size>",
        ],
    )
    def test_a_size_that_is_not_given(self, size: bytes) -> None:
        """Without both sides, coordinates are pixels of the image, and boxes are kept."""
        given_size = b"<size><width>500</width><height>375</height><depth>3</depth></size>"
        columns_found = parse_xml(ILSVRC.replace(given_size, size))
        assert columns_found == parse_xml(ILSVRC)._replace(width=0, height=0)

    def test_parts_are_not_the_object(self) -> None:
        """Parts of a Pascal VOC object, such as heads and hands, are not read as boxes."""
        box = ILSVRC[ILSVRC.index(b"<bndbox") :].partition(b"</object")[0]
        part = b"<part><name>head</name>" + box + b"</part></object>"
        data = ILSVRC.replace(b"</object>", part, 1)
        assert data.count(b"<bndbox>") == 3
        assert parse_xml(data) == parse_xml(ILSVRC)

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"<html><body>404</body></html>", "<html> is not an annotation"),
            (b"<object/>", "<object> is not an annotation"),
            (b"<annotation>", "not XML"),
            (ILSVRC.replace(b"<width>500<", b"<width>5.5<"), "5.5"),
            (ILSVRC.replace(b"<width>500<", b"<width>wide<"), "wide"),
            (
                ILSVRC.replace(b"<width>500<", b"<width>3000000000<"),
                "3000000000 x 375 .* too large",
            ),
            (ILSVRC.replace(b"<height>375<", b"<height>16777216<"), "size .* is too large"),
            *(
                (ILSVRC.replace(b"<xmin>5<", b"<xmin>" + side + b"<"), message)
                for side, message in (
                    (b"", "could not convert"),
                    (b"five", "five"),
                    (b"nan", "are not the sides of a box"),
                    (b"inf", "are not the sides of a box"),
                    (b"-1e99", "are not the sides of a box"),
                    (b"0x10", "0x10"),
                )
            ),
            (b'<!DOCTYPE a [<!ENTITY l0 "lol">' + LAUGHS + b"]><a>&l9;</a>", "document type"),
            (b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + ILSVRC, "document type"),
        ],
    )
    def test_what_is_refused(self, data: bytes, message: str) -> None:
        """Other files, boxes without numbers and document types are refused."""
        with pytest.raises(ValueError, match=message):
            parse_xml(data)

    @given(data=st.binary() | mutated(st.just(ILSVRC)))
    def test_any_bytes_are_read_or_refused(self, data: bytes) -> None:
        """Arbitrary bytes and damaged files give boxes or a ValueError, and nothing else."""
        with contextlib.suppress(ValueError):
            drawn = parse_xml(data)
            assert all(len(sides) == 4 for _, sides in drawn.boxes)


def parsed(data: bytes, **options: Any) -> Annotations:
    """The annotations of a CSV file."""
    return parse_csv(data, BoxOptions(source="boxes.csv", **options))


DETECTION = (
    b"filename,width,height,class,xmin,ymin,xmax,ymax\n"
    b"a.jpg,500,375,dog,5,6,70,80\n"
    b"\n"
    b"b.jpg,640,480,cat,1,2,3,4\n"
    b"a.jpg,500,375,dog,1,1,2,2\n"
)
OWN = {"filename": "image", "xmin": "x1", "ymin": "y1", "xmax": "x2", "ymax": "y2"}
TABLES: dict[str, tuple[bytes, dict[str, Any], Annotations]] = {
    "TensorFlow's, relative and without a header": (
        b"n00007846_64193.JPEG,0.0060,0.2620,0.7545,0.9940\n"
        b"n00007846_1.JPEG,0.1,0.2,0.3,0.4\n"
        b"n00007846_64193.JPEG,0.5,0.5,0.6,0.6\n",
        {},
        [
            (
                "n00007846_64193.JPEG",
                Annotation(1, 1, [("", (0.006, 0.262, 0.7545, 0.994)), ("", (0.5, 0.5, 0.6, 0.6))]),
            ),
            ("n00007846_1.JPEG", Annotation(1, 1, [("", (0.1, 0.2, 0.3, 0.4))])),
        ],
    ),
    "a sixth column is the class": (
        b"a.jpg,0,0,1,1, cat \n",
        {},
        [("a.jpg", Annotation(1, 1, [("cat", (0, 0, 1, 1))]))],
    ),
    "columns of other names in any order": (
        b"x2,image,label,y1,x1,kind,y2\n40,d/a.png,7,2,1.5,dog,30\n",
        {"units": "pixels", "columns": {**OWN, "label": "kind"}},
        [("d/a.png", Annotation(0, 0, [("dog", (1.5, 2, 40, 30))]))],
    ),
    "no class": (
        b"filename,xmin,ymin,xmax,ymax\na.jpg,0,0,1,1\n",
        {},
        [("a.jpg", Annotation(1, 1, [("", (0, 0, 1, 1))]))],
    ),
    "Kaggle's LOC_train_solution.csv": (
        b"ImageId,PredictionString\n"
        b"n02017213_7894,n02017213 115 49 448 294 \n"
        b"n02017213_1,n02017213 1 2 3 4 n02017214 5 6 7 8 \n",
        {},
        [
            ("n02017213_7894", Annotation(0, 0, [("n02017213", (115, 49, 448, 294))])),
            (
                "n02017213_1",
                Annotation(0, 0, [("n02017213", (1, 2, 3, 4)), ("n02017214", (5, 6, 7, 8))]),
            ),
        ],
    ),
    "object detection's, with sizes and blank lines": (
        DETECTION,
        {"units": "pixels", "columns": {"label": "class"}},
        [
            ("a.jpg", Annotation(500, 375, [("dog", (5, 6, 70, 80)), ("dog", (1, 1, 2, 2))])),
            ("b.jpg", Annotation(640, 480, [("cat", (1, 2, 3, 4))])),
        ],
    ),
    "a name that is not UTF-8": (
        b"caf\xe9.jpg,0,0,1,1\n",
        {},
        [("caf\udce9.jpg", Annotation(1, 1, [("", (0, 0, 1, 1))]))],
    ),
    "a byte order mark": (
        "café.jpg,0,0,1,1\n".encode("utf-8-sig"),
        {},
        [("café.jpg", Annotation(1, 1, [("", (0, 0, 1, 1))]))],
    ),
}


class TestCsv:
    @pytest.mark.parametrize(("data", "options", "expected"), TABLES.values(), ids=TABLES)
    def test_tables(self, data: bytes, options: dict[str, Any], expected: Annotations) -> None:
        """The boxes of an image are together, in their order."""
        assert parsed(data, **options) == expected

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"a.jpg,0,0,1\n", "boxes.csv, line 1: expected a header"),
            (b"a.jpg,0,0,1,1,x,y\n", "line 1: 7 columns, expected 6"),
            (b"a.jpg,0,0,1,1\nb.jpg,0,zero,1,1\n", "boxes.csv, line 2: .*'zero'"),
            (b"a.jpg,0,0,nan,1\n", "line 1: .*nan.* are not the sides of a box"),
            (b"image,xmin,ymin,xmax,ymax\n", "with the columns filename,xmin,ymin,xmax,ymax, as"),
            (b"filename,xmin,ymin,xmax,ymax\na,0,0,,1\n", "line 2: could not convert"),
            (b"ImageId,PredictionString\na,n1 1 2 3\n", "line 2: expected a synset and four sides"),
            (b"ImageId,PredictionString\nx\n", "boxes.csv, line 2: 1 column, expected 2"),
            (b"ImageId,PredictionString\na,n1 1 2 3 4,\n", "line 2: 3 columns, expected 2"),
            (b"a.jpg,10,20,300,400\n", r"look like pixels.*boxes\.units=pixels"),
            (b'a.jpg,0,0,1,1\n"b', "line 2: unexpected end of data"),
            (b"", "expected a header"),
            (b",,,,\n", "expected a header"),
            (b"a.jpg,0,0,1,1\n\n\nb.jpg,0,zero,1,1\n", "line 4: .*'zero'"),
            (b"filename,xmin,ymin,xmax,ymax\na.jpg,0,0,1,1,5\n", "line 2: 6 columns, expected 5"),
            (b"filename;xmin;ymin;xmax;ymax\na.jpg;0;0;1;1\n", "line 1: expected a header"),
            (b"a.jpg\t0\t0\t1\t1\n", "line 1: expected a header"),
        ],
    )
    def test_lines_that_are_no_boxes(self, data: bytes, message: str) -> None:
        """The error has the line, and no box is guessed."""
        with pytest.raises(ConfigError, match=message):
            parsed(data)

    @pytest.mark.parametrize("size", [b"3000000000,375", b"500,16777216"])
    def test_a_size_that_no_image_has_is_refused(self, size: bytes) -> None:
        """A width or height that is too large is an error with the line."""
        data = DETECTION.replace(b"640,480", size)
        with pytest.raises(ConfigError, match=r"boxes\.csv, line 4: the size .* is too large"):
            parsed(data, units="pixels", columns={"label": "class"})

    @given(st.binary())
    def test_any_bytes_are_read_or_refused(self, data: bytes) -> None:
        """Arbitrary bytes give boxes or a ConfigError, and nothing else."""
        with contextlib.suppress(ConfigError):
            assert all(drawn.boxes for _, drawn in parsed(data))


def xml(*objects: str, size: tuple[int, int] = (10, 10)) -> bytes:
    """An XML file with a box of each class."""
    boxes = "".join(
        f"<object><name>{name}</name><bndbox><xmin>{i}</xmin><ymin>0</ymin><xmax>9</xmax>"
        f"<ymax>9</ymax></bndbox></object>"
        for i, name in enumerate(objects)
    )
    width, height = size
    shape = f"<size><width>{width}</width><height>{height}</height></size>"
    return f"<annotation>{shape}{boxes}</annotation>".encode()


class TestMatches:
    @pytest.fixture(autouse=True)
    def _prepare(self, tmp_path: Path) -> None:
        """Prepare the path of an archive and a list of messages for each test."""
        self.archive = tmp_path / "boxes.tar"
        self.notes: list[str] = []

    def matched(
        self, files: dict[str, bytes], names: list[str | None], own: list[int], **options: Any
    ) -> BoxColumns:
        """The boxes of images with these names and labels."""
        self.archive.write_bytes(tar_of(files))
        chosen = BoxOptions(source=str(self.archive), **options)
        labels = np.array(own, np.int32)
        return find_boxes(chosen, None, names, labels, CLASSES, self.notes.append)

    def labels_of(self, columns_found: BoxColumns, rows: int) -> list[list[int]]:
        """The labels of each image's boxes."""
        images = columns_found.annotated_images(slice(0, rows))
        return [[box.label for box in image.boxes] for image in images]

    def test_by_base_name(self) -> None:
        """Annotations match images by base name. Images and annotations may lack a partner."""
        files = {"Annotation/cat/a.1.xml": xml("cat", "dog"), "b.xml": xml(), "c.xml": xml("cat")}
        names = ["x/d.png", "cat/b.JPEG", "dog/a.1.JPEG", None]
        matches = self.matched(files, [*names], [0, 0, 1, -1])
        assert self.labels_of(matches, 4) == [[], [], [0, 1], []]
        first, _, third, _ = matches.annotated_images(slice(0, 4))
        assert third.boxes[1].xmin == 1
        assert (third.width, first.width) == (10, 1)
        assert self.notes == [
            f"{self.archive}: 3 annotations read; 1 of 3 images have 2 boxes",
        ]

    def test_by_path(self) -> None:
        """Images of one name in several folders are distinguished by their path."""
        files = {"cat/1.xml": xml("cat"), "dog/1.xml": xml("dog", "dog")}
        matches = self.matched(files, ["dog/1.jpg", "cat/1.jpg"], [1, 0], key="path")
        assert self.labels_of(matches, 2) == [[1, 1], [0]]

    def test_two_images_of_one_name(self) -> None:
        """An annotation that could belong to two images is refused, with a remedy."""
        with pytest.raises(ConfigError, match=r"several images .* '1': give boxes\.key=path"):
            self.matched({"1.xml": xml("cat")}, ["dog/1.jpg", "cat/1.jpg"], [1, 0])

    def test_two_annotations_of_one_name(self) -> None:
        """Two annotations of one image are refused.

        Those without an image here may have any name.
        """
        files = {"a/1.xml": xml("cat"), "b/1.xml": xml("cat"), "a/2.xml": xml(), "b/2.xml": xml()}
        with pytest.raises(ConfigError, match="or annotations have the name '1'"):
            self.matched(files, ["1.jpg"], [0])
        matches = self.matched({**files, "3.xml": xml("dog")}, ["3.jpg"], [0])
        assert self.labels_of(matches, 1) == [[1]]

    def test_no_annotation_is_of_any_image(self) -> None:
        """If no annotation matches, the error shows a name of each side."""
        with pytest.raises(
            ConfigError, match=r"no image has boxes .*'a', images such as 'x/b.jpg'"
        ):
            self.matched({"a.xml": xml("cat")}, [None, "x/b.jpg"], [-1, 0])

    @pytest.mark.parametrize(("labels", "expected"), [("own", [-1, 1, 0]), ("image", [1, 1, 1])])
    def test_an_unknown_class(self, labels: str, expected: list[int]) -> None:
        """An unknown class has label -1 and is reported.

        Boxes without names have the image's label.
        """
        files = {"a.xml": xml("Scottish_deerhound", "", "cat")}
        matches = self.matched(files, ["a.jpg"], [1], labels=labels)
        assert self.labels_of(matches, 1) == [expected]
        start = "1 box of classes that are not in labels"
        reported = [note for note in self.notes if note.startswith(start)]
        assert len(reported) == expected.count(-1)

    def test_names_that_are_not_utf8(self) -> None:
        """Names that are not UTF-8 are matched by their bytes."""
        name = b"caf\xe9".decode("utf-8", "surrogateescape")
        matches = self.matched({f"{name}.xml": xml("cat")}, [f"{name}.jpg"], [0])
        assert self.labels_of(matches, 1) == [[0]]
