"""Targets: listings, label files, boxes and the devkit's tables."""

from __future__ import annotations

import functools
import gzip
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.boxes.annotations import of_xml
from dataprep.boxes.options import BoxOptions
from dataprep.boxes.read import read_annotations
from dataprep.boxes.table import parse_boxes
from dataprep.labelling.devkit import parse_meta
from dataprep.labelling.ground_truth import parse_ground_truth
from dataprep.labelling.order import parse_order
from dataprep.labelling.tables import once, pairs
from dataprep.labels import LabelSpace
from dataprep.sources.class_names import parse_class_names
from dataprep.sources.listed import Listed
from dataprep.sources.listed_paths import PathRule
from dataprep.sources.listing_tables import parse_parquet, parse_text_table
from dataprep.sources.options import ListingOptions
from tests.reliability.hostile import mutations as m
from tests.reliability.hostile.fuzz import NAME, Target
from tests.reliability.hostile.tables import table_mutation

_LABELS = LabelSpace.of(["n01440764", "n01443537"]).to_json()
_PATH = rf"{NAME}|://"  # an address that is refused is its own place
_KEPT = Path("/dev/shm") / f"hostile-{os.getpid()}"


def sound(found: Listed) -> None:
    """A class or a problem for each row, and a name for each path."""
    rule = PathRule("/root")
    assert len(found.paths) == len(found.classes)
    for path in found.paths:
        rule(path)
    if found.numbered:
        assert all(name.isdigit() for name in found.classes if name)
    assert all(bool(name) or row in found.problems for row, name in enumerate(found.classes))
    if found.values is not None:
        assert found.values.shape[0] == len(found.paths)


def text_table(options: ListingOptions, delimiter: str) -> Callable[[bytes], None]:
    """A CSV or TSV file."""
    return lambda data: sound(parse_text_table(data, NAME, options, delimiter))


def parquet(data: bytes) -> None:
    """A listing as Parquet."""
    sound(parse_parquet(data, NAME, ListingOptions()))


def csvs() -> Sequence[bytes]:
    """Of all kinds."""
    return [
        b'path,label\na/b.jpg,cat\n"a,b.jpg",dog\n',
        b"filename,class\nx.jpg,0\ny.jpg,3.0\n",
        b"path,label\ns3://bucket/key.jpg,1\n/abs.jpg,-1\n",
    ]


def tsvs() -> Sequence[bytes]:
    """The same with tabs."""
    return [data.replace(b",", b"\t") for data in csvs()]


def valued() -> Sequence[bytes]:
    """Several labels a row."""
    return [b"path,x,y\na.jpg,0,0.5\nb.jpg,1,-3\nc.jpg,,\n"]


def parquets() -> Sequence[bytes]:
    """Listings of text, numbers and categories."""
    found = []
    for labels in (["cat", "dog", None], [0, 1, 2], [0.0, 1.5, None]):
        sink = io.BytesIO()
        table = pa.table({"path": ["a.jpg", "b.jpg", "c.jpg"], "label": labels, "n": [1, 2, 3]})
        if labels[0] == "cat":
            table = table.set_column(1, "label", table["label"].dictionary_encode())
        pq.write_table(table, sink)
        found.append(sink.getvalue())
    return found


def read_pairs(data: bytes) -> None:
    """Two columns, or JSON."""
    once(pairs(data, NAME), NAME)


def tables() -> Sequence[bytes]:
    """Files about classes."""
    return [
        b"n01440764\ttench\nn01443537\tgoldfish\n",
        b"old,new\ncat,animal\n",
        b'{"0": ["n01440764", "tench"], "1": ["n01443537", "goldfish"]}',
        b'{"cat": "animal", "dog": "animal"}',
        b"n01440764 tench, Tinca tinca\nn01443537 goldfish\n",
        b"# comment\ncat,0\ndog,1\n",
        b'{"cat": 0, "dog": 1}',
        b'["cat", "dog"]',
        _LABELS,
    ]


def read_truth(data: bytes) -> None:
    """Ground truth with a devkit's numbers known."""
    found = parse_ground_truth(data, NAME, {1: "n01440764", 2: "n01443537"})
    assert all(found.values())


def truths() -> Sequence[bytes]:
    """The devkit's, synsets, Kaggle's and a table."""
    return [
        b"1\n2\n1\n",
        b"n01440764\nn01443537\n",
        b"ImageId,PredictionString\nILSVRC2012_val_00000001,n01440764 1 2 3 4\n",
        b"a.jpg,cat\nb.jpg,dog\n",
    ]


def read_order(data: bytes) -> None:
    """Each class once."""
    order, texts = parse_order(data, NAME)
    assert len(set(order)) == len(order)
    assert texts.keys() <= {*order}


def read_names(data: bytes) -> None:
    """Class names, a line each."""
    found = parse_class_names(data, NAME)
    assert len(found.index) == len(found.labels)


def read_boxes(units: str) -> Callable[[bytes], None]:
    """A table of boxes."""
    options = BoxOptions(source="x", units=units)  # type: ignore[arg-type]
    return lambda data: _sound_boxes(parse_boxes(data, options, NAME))


def _sound_boxes(table: pa.Table) -> None:
    table.validate(full=True)
    for row in table.to_pylist():
        assert len({len(row[side]) for side in ("xmin", "ymin", "xmax", "ymax", "name")}) == 1


def box_tables() -> Sequence[bytes]:
    """TensorFlow's, with a header, and Kaggle's."""
    return [
        b"a.JPEG,0.1,0.2,0.5,0.9\na.JPEG,0.3,0.3,0.4,0.5\n",
        b"filename,xmin,ymin,xmax,ymax,label\na.JPEG,0,0,1,1,cat\n",
        b"ImageId,PredictionString\na,n01440764 1 2 3 4 n01440764 5 6 7 8 \n",
        b"filename,xmin,ymin,xmax,ymax,width,height\na.JPEG,0,0,1,1,10,20\n",
    ]


def read_xml(data: bytes) -> None:
    """One annotation: its boxes, or why there are none."""
    table = of_xml([(NAME, data)])
    _sound_boxes(table)


def xmls() -> Sequence[bytes]:
    """As ILSVRC and Pascal VOC write them."""
    box = b"<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax></bndbox>"
    return [
        b"<annotation><size><width>50</width><height>60</height></size>"
        b"<object><name>n01440764</name>" + box + b"</object></annotation>",
        b"<?xml version='1.0' encoding='utf-8'?><annotation/>",
    ]


def box_tars() -> Sequence[bytes]:
    """Tars of XML, within tars, compressed."""
    from tests.tars import tar_of

    inner = tar_of({"a.xml": xmls()[0], "b.xml": xmls()[1]})
    return [inner, tar_of({"n01.tar": inner}), gzip.compress(inner)]


def read_box_tar(data: bytes) -> None:
    """As the source of boxes."""
    _KEPT.mkdir(exist_ok=True)
    path = _KEPT / f"{NAME}.tar"
    path.write_bytes(data)
    _sound_boxes(read_annotations(BoxOptions(source=str(path))))


def read_meta(data: bytes) -> None:
    """IDs to synsets."""
    found = parse_meta(data, NAME)
    assert all(isinstance(number, int) for number in found.synset_of_id)


@functools.cache
def metas() -> Sequence[bytes]:
    """A small one."""
    import numpy as np
    from scipy.io import savemat

    fields = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("num_children", "O")]
    rows = np.array([(1, "n01440764", "tench", 0), (2, "n01443537", "goldfish", 0)], dtype=fields)
    found = []
    for packed in (False, True):
        sink = io.BytesIO()
        savemat(sink, {"synsets": rows}, do_compression=packed)
        found.append(sink.getvalue())
    return found


def targets() -> list[Target]:
    """All of them."""
    family, sources = "listings", ("dataprep/sources/", "dataprep/names")
    labels, boxes = ("dataprep/labelling/", "dataprep/sources/"), ("dataprep/boxes/",)
    lines, plain = m.stacked(m.cells), ListingOptions()
    several = ListingOptions(path="path", labels=("x", "y"))
    return [
        Target("CSV listing", family, csvs, lines, text_table(plain, ","), sources, _PATH, cost=2),
        Target("TSV listing", family, tsvs, lines, text_table(plain, "\t"), sources, _PATH, cost=2),
        Target(
            "listed values", family, valued, lines, text_table(several, ","), sources, _PATH, cost=2
        ),
        Target(
            "Parquet listing", family, parquets, m.stacked(table_mutation), parquet, sources, cost=4
        ),
        Target("class tables", family, tables, m.stacked(m.cells, m.json_tree), read_pairs, labels),
        Target("ground truth", family, truths, lines, read_truth, labels),
        Target("class order", family, tables, m.stacked(m.cells, m.json_tree), read_order, labels),
        Target("class names", family, tables, lines, read_names, labels),
        Target("boxes, relative", family, box_tables, lines, read_boxes("relative"), boxes, cost=4),
        Target("boxes, pixels", family, box_tables, lines, read_boxes("pixels"), boxes, cost=4),
        Target("boxes, XML", family, xmls, m.stacked(m.xml_text), read_xml, boxes, "$^"),
        Target(
            "boxes, tar", family, box_tars, m.stacked(m.tar_header), read_box_tar, boxes, cost=4
        ),
        Target("meta.mat", family, metas, m.stacked(m.bytes_at_random), read_meta, labels, cost=4),
    ]
