"""PURE. The boxes of many images as columns, not objects.

ILSVRC2012's 615,299 boxes take some 20 MB so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dataprep.formats import Box

UNREADABLE = -1
_SIDES = ("xmin", "ymin", "xmax", "ymax")


class Annotated(NamedTuple):
    """The boxes of one image as they were drawn, in units of an image of ``width`` x ``height``.

    1 x 1 stands for relative sides, 0 x 0 for pixels of the image as it is stored, -1 x -1 for
    an annotation that could not be read. A box of a class that is not known has label -1.
    """

    boxes: tuple[Box, ...] = ()
    width: int = 1
    height: int = 1


@dataclass(frozen=True)
class BoxColumns:
    """Boxes of rows, which are images.

    Attributes:
        starts: int64 (rows + 1,): the boxes of row ``i`` are ``starts[i]`` to ``starts[i + 1]``.
        sides: float32 (boxes, 4): xmin, ymin, xmax, ymax; see ``Annotated`` for their units.
        labels: int32 (boxes,), 0-based, -1 for a class that is not known.
        widths: int32 (rows,), as ``Annotated.width``.
        heights: int32 (rows,), as ``Annotated.height``.
    """

    starts: NDArray[np.int64]
    sides: NDArray[np.float32]
    labels: NDArray[np.int32]
    widths: NDArray[np.int32]
    heights: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.widths)

    def of(self, row: int) -> Annotated:
        """What is known of one image."""
        within = slice(int(self.starts[row]), int(self.starts[row + 1]))
        sides, labels = self.sides[within].tolist(), self.labels[within].tolist()
        boxes = tuple(
            Box(left, top, right, bottom, label)
            for (left, top, right, bottom), label in zip(sides, labels, strict=True)
        )
        return Annotated(boxes, int(self.widths[row]), int(self.heights[row]))

    def take(self, rows: NDArray[np.int64]) -> BoxColumns:
        """Those of some rows, in their order; -1 is an image without an annotation."""
        if not len(self):
            return none_of(len(rows))
        known = rows >= 0
        counts = np.where(known, np.diff(self.starts)[rows], 0)
        starts = np.concatenate([[0], np.cumsum(counts)])
        # Box j of the result is as far behind its row's first box as it is in these columns.
        shift = np.repeat(self.starts[rows] - starts[:-1], counts)
        boxes = np.arange(starts[-1]) + shift
        return BoxColumns(
            starts,
            self.sides[boxes],
            self.labels[boxes],
            np.where(known, self.widths[rows], np.int32(1)),
            np.where(known, self.heights[rows], np.int32(1)),
        )

    def to_arrow(self) -> dict[str, pa.Array]:
        """As columns of the plan."""
        starts = pa.array(self.starts, pa.int32())

        def lists(values: NDArray[np.generic]) -> pa.Array:
            return pa.ListArray.from_arrays(starts, pa.array(np.ascontiguousarray(values)))

        columns = {"box_width": pa.array(self.widths), "box_height": pa.array(self.heights)}
        columns |= {f"box_{side}": lists(self.sides[:, i]) for i, side in enumerate(_SIDES)}
        return {**columns, "box_label": lists(self.labels)}

    @classmethod
    def from_arrow(cls, table: pa.Table) -> BoxColumns | None:
        """Read what ``to_arrow`` made; None where the table has no boxes."""
        if "box_label" not in table.column_names:
            return None
        kinds = dict.fromkeys(("box_width", "box_height"), pa.int32())
        kinds |= {f"box_{side}": pa.list_(pa.float32()) for side in _SIDES}
        for name, kind in {**kinds, "box_label": pa.list_(pa.int32())}.items():
            if table[name].type != kind or table[name].null_count:
                raise TypeError(f"column {name!r} is not of {kind} without gaps")
        counts = pa.compute.list_value_length(table["box_label"]).to_numpy()
        flat = {name: pa.compute.list_flatten(table[f"box_{name}"]).to_numpy() for name in _SIDES}
        labels = pa.compute.list_flatten(table["box_label"]).to_numpy()
        if {counts.sum()} != {len(labels), *map(len, flat.values())} or labels.dtype.kind != "i":
            raise ValueError("boxes of four sides and a label each are wanted")
        return cls(
            np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
            np.stack([flat[side] for side in _SIDES], axis=1),
            labels,
            table["box_width"].to_numpy(),
            table["box_height"].to_numpy(),
        )


def none_of(rows: int) -> BoxColumns:
    """No box in any of ``rows`` images."""
    return BoxColumns(
        np.zeros(rows + 1, np.int64),
        np.empty((0, 4), np.float32),
        np.empty(0, np.int32),
        np.ones(rows, np.int32),
        np.ones(rows, np.int32),
    )
