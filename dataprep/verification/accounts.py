"""Every sample of the plan in the receipts, once; every class with as many records as it should.

The plan is what the source held. Shards are compared one at a time, and only what differs is
kept, so that a million samples cost no more than their plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dataprep import keys
from dataprep.counted import counted
from dataprep.job.jobfile import JobFile
from dataprep.labels import LabelSpace
from dataprep.names import escape
from dataprep.plan import SplitPlan
from dataprep.receipt import Receipt, Row
from dataprep.verification.faults import Fault

_MOST_FAULTS = 20

LabelCounts = Mapping[str, Counter[int]]
"""Format name to how many records have each 0-based label."""


@dataclass
class Account:
    """Holds receipts against the plan of their split.

    ``retried`` has samples that were tried again, and the sizes of their mended files.
    """

    job: JobFile
    plan: SplitPlan
    labels: LabelSpace
    retried: Mapping[str, int] = field(default_factory=dict)
    _missing: dict[str, list[int]] = field(default_factory=dict)
    _extra: dict[str, list[int]] = field(default_factory=dict)
    _faults: list[Fault] = field(default_factory=list)
    _records: dict[str, Counter[int]] = field(default_factory=dict)
    _wanted: dict[str, Counter[int]] = field(default_factory=dict)
    _lost: Counter[int] = field(default_factory=Counter)

    def add(self, receipt: Receipt, found: LabelCounts) -> None:
        """One shard: its receipt, and the labels that its records hold, where they were read."""
        place = self.plan.rows_of(receipt.shard)
        names = [escape(name) for name in self.plan.names[place]]
        rows = receipt.rows
        self._compare_names(receipt.shard, names, [row.source for row in rows])
        if names == [row.source for row in rows]:
            self._compare_rows(receipt, place)
        self._count_records(receipt)
        lost = Counter(row.label for row in rows if row.status != "written")
        wanted = Counter(self.plan.labels[place].tolist()) - lost
        self._lost.update(lost)
        for name, counts in found.items():
            self._records.setdefault(name, Counter()).update(counts)
            self._wanted.setdefault(name, Counter()).update(wanted)

    def agrees(self, receipt: Receipt) -> bool:
        """Whether a receipt by itself is as the plan has it."""
        alone = Account(self.job, self.plan, self.labels, self.retried)
        alone.add(receipt, {})
        return next(alone.faults(), None) is None

    def faults(self) -> Iterator[Fault]:
        """What does not add up; classes last."""
        found = [*self._faults, *self._name_faults(), *self._label_faults()]
        yield from found[:_MOST_FAULTS]
        if len(found) > _MOST_FAULTS:
            more = counted(len(found) - _MOST_FAULTS, "more fault")
            yield Fault(keys.plan(self.job.split), f"and {more} between plan and receipts")

    def remarks(self) -> Iterator[str]:
        """Names that the plan itself has more than once."""
        names = self.plan.names[: self.plan.samples]
        if len(set(names)) == len(names):
            return
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        yield (
            f"the source names {counted(len(twice), 'sample')} more than once, "
            f"such as {escape(twice[0])}"
        )

    def _compare_names(self, shard: int, wanted: Sequence[str], found: Sequence[str]) -> None:
        if wanted == found:
            return
        missing, extra = Counter(wanted), Counter(found)
        for name in (missing - extra).elements():
            self._missing.setdefault(name, []).append(shard)
        for name in (extra - missing).elements():
            self._extra.setdefault(name, []).append(shard)
        if missing == extra:
            at = next(
                i for i, (one, other) in enumerate(zip(wanted, found, strict=True)) if one != other
            )
            self._say(shard, f"its samples stand in another order than the plan's, from {at:,} on")

    def _compare_rows(self, receipt: Receipt, place: slice) -> None:
        plan = self.plan
        wanted = zip(
            range(place.start, place.stop),
            plan.labels[place].tolist(),
            plan.sizes[place].tolist(),
            plan.names[place],
            strict=True,
        )
        for row, (number, label, size, name) in zip(receipt.rows, wanted, strict=True):
            if row.label != label:
                what = f"{row.source} has label {row.label}, the plan says {label}"
            elif row.synset != escape(self.labels.labels[label].synset):
                what = f"{row.source} is of {row.synset!r}, which labels.json does not call {label}"
            elif row.number != number or row.source_bytes not in (size, self.retried.get(name)):
                what = (
                    f"{row.source} is number {row.number:,} of {row.source_bytes:,} bytes, "
                    f"the plan says number {number:,} of {size:,}"
                )
            else:
                continue
            self._say(receipt.shard, what)

    def _count_records(self, receipt: Receipt) -> None:
        written = [row for row in receipt.rows if row.status == "written"]
        for name, stored in receipt.formats.items():
            placed = sum(name in (row.records or {}) for row in written)
            if not stored.records == placed == len(written):
                self._say(
                    receipt.shard,
                    f"{counted(len(written), 'sample')} written, {stored.records:,} records "
                    f"in {name}, {placed:,} with their place",
                )

    def _name_faults(self) -> Iterator[Fault]:
        """A name too few in one shard and too many in another was moved."""
        homes = self._homes()
        for name, shards in self._missing.items():
            if name in self._extra:
                what = f"{name} is in {self._receipts(self._extra[name])} instead"
            else:
                what = f"{name} is in the plan of this shard and in no receipt"
            yield self._fault(shards[0], what)
        for name, shards in self._extra.items():
            if name in self._missing:
                continue
            if name in homes:
                what = f"{name} is there although {self._receipt(homes[name])} has it: twice"
            else:
                what = f"{name} is not in {keys.plan(self.job.split)}"
            yield from (self._fault(shard, what) for shard in shards)

    def _homes(self) -> dict[str, int]:
        if not self._extra.keys() - self._missing.keys():
            return {}
        plan = self.plan
        placed = zip(plan.names[: plan.samples], plan.shards.tolist(), strict=False)
        names = ((escape(name), shard) for name, shard in placed)
        return {name: shard for name, shard in names if name in self._extra}

    def _label_faults(self) -> Iterator[Fault]:
        for name, wanted in self._wanted.items():
            found = self._records[name]
            for label in sorted(wanted.keys() | found.keys()):
                if wanted[label] != found[label]:
                    lost = (
                        f", besides {self._lost[label]:,} not written" if self._lost[label] else ""
                    )
                    yield Fault(
                        keys.plan(self.job.split),
                        f"{self._class(label)} has {counted(found[label], 'record')} in {name}, "
                        f"the source {counted(wanted[label], 'sample')}{lost}",
                    )

    def _class(self, label: int) -> str:
        known = 0 <= label < len(self.labels.labels)
        return f"class {label} ({escape(self.labels.labels[label].synset) if known else 'unknown'})"

    def _say(self, shard: int, what: str) -> None:
        self._faults.append(self._fault(shard, what))

    def _fault(self, shard: int, what: str) -> Fault:
        key = self._receipt(shard)
        return Fault(key, what, remedy=key)

    def _receipt(self, shard: int) -> str:
        return keys.receipt(self.job.split, shard, self.job.shards)

    def _receipts(self, shards: Sequence[int]) -> str:
        return " and ".join(self._receipt(shard) for shard in shards)


def receipt_labels(rows: Sequence[Row], formats: Sequence[str]) -> LabelCounts:
    """Labels as a receipt has them, where records are not read."""
    counts = Counter(row.label for row in rows if row.status == "written")
    return dict.fromkeys(formats, counts)
