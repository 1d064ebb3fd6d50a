"""PURE. The samples of a WebDataset tar: members that follow each other under one key.

The key of a member is its path up to the first dot of its base name, as in the WebDataset library:
``a/0001.seg.png`` has the key ``a/0001`` and the extension ``seg.png``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dataprep.sources.classes import CLUTTER, is_clutter, promises_image
from dataprep.sources.exclusion import Exclusion
from dataprep.sources.protocol import Problem
from dataprep.sources.tars import KEPT_BELOW_BYTES

IMAGE_EXTENSIONS = ("jpg", "jpeg", "png", "webp")
LARGEST_JSON_BYTES = 2**20
"""A larger ``.json`` is not read for the class of one sample."""

NO_IMAGE = "no image (.jpg, .jpeg, .png or .webp) in the sample"
NO_EXTENSION = "no extension, so that it belongs to no sample"
REPEATED = "another sample of its tar has the same key"
SEVERAL = (
    "several images in the sample: leave one kind of them out, as in --exclude '*.png', to read "
    "the other"
)
OTHER_EXTENSION = (
    "its extension, which begins at the first dot of the name, is not .jpg, .jpeg, .png or .webp"
)

_LONGEST_CLASS = 1000  # Python reads no numbers of more than 4,300 digits
_is_no_line = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]").search


class Member(NamedTuple):
    """A member of a tar; ``content`` is known of some small ones."""

    name: str
    container: str
    offset: int
    size: int
    problem: Problem | None = None
    content: bytes | None = None


class SampleRow(NamedTuple):
    """The image of a sample, or another member that must be accounted for, and its class.

    ``label`` is what the sample says about its class, a number or a name; empty for nothing.
    """

    member: Member
    problem: Problem | None = None
    label: str = ""


@dataclass
class SampleReader:
    """Makes samples of the members of tars.

    Attributes:
        label_key: the key of the class in ``.json`` members; empty: ``.cls`` members have it.
        exclusion: what the job leaves out.
        ignored: how many members of each extension were not used.
        left_out: members without an image's name that the job leaves out.
        json_keys: the keys of the first ``.json`` that was ignored, if it could be read.
    """

    label_key: str = ""
    exclusion: Exclusion = field(default_factory=Exclusion)
    ignored: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)
    json_keys: tuple[str, ...] = ()

    def rows(self, members: Sequence[Member]) -> Iterator[SampleRow]:
        """The samples of one tar, and members that belong to none."""
        samples: list[dict[str, Member]] = []
        keys: list[str] = []
        for member in members:
            if reason := self.exclusion.by_glob(member.name):
                if promises_image(member.name):
                    yield SampleRow(member, Problem("skipped", reason))
                else:
                    self.left_out.append(member.name)
                continue
            key, extension = key_and_extension(member.name)
            if is_clutter(member.name) and member.problem is None:
                yield SampleRow(member, Problem("skipped", CLUTTER))
            elif not extension:
                yield SampleRow(member, member.problem or Problem("skipped", NO_EXTENSION))
            elif keys[-1:] == [key] and extension not in samples[-1]:
                samples[-1][extension] = member
            else:
                keys.append(key)
                samples.append({extension: member})
        counts = Counter(keys)
        for key, sample in zip(keys, samples, strict=True):
            yield from self._rows_of(sample, is_repeated=counts[key] > 1)

    def _rows_of(self, sample: dict[str, Member], *, is_repeated: bool) -> Iterator[SampleRow]:
        """The image of a sample; where it has none or several, what must be accounted for."""
        images = [sample[name] for name in IMAGE_EXTENSIONS if name in sample]
        problem = None
        if not images:
            images = [member for member in sample.values() if promises_image(member.name)]
            problem = Problem("failed", OTHER_EXTENSION)
        if not images:
            images = [next(iter(sample.values()))]
            problem = Problem("failed", NO_IMAGE)
        if is_repeated:
            problem = Problem("failed", REPEATED)
        elif problem is None and len(images) > 1:
            problem = Problem("failed", SEVERAL)
        self._count_ignored(sample, images)
        if problem is not None:
            for image in images:
                yield SampleRow(image, image.problem or problem)
            return
        (image,) = images
        label, reason = self._label_of(sample)
        failure = Problem("failed", reason) if reason else None
        yield SampleRow(image, image.problem or failure, label)

    def _count_ignored(self, sample: dict[str, Member], images: Sequence[Member]) -> None:
        """Count the members that give neither an image nor a class."""
        giving = "json" if self.label_key else "cls"
        for extension, member in sample.items():
            if extension != giving and member not in images:
                self.ignored[extension] += 1
        if "json" in sample and not (self.label_key or self.json_keys):
            facts, _ = _json_of(sample["json"])
            self.json_keys = tuple(facts or ())

    def _label_of(self, sample: dict[str, Member]) -> tuple[str, str]:
        """What the sample says about its class, or nothing and the reason if it is no class."""
        if not self.label_key:
            return _text_of(sample["cls"]) if "cls" in sample else ("", "")
        if "json" not in sample:
            return "", ""
        facts, reason = _json_of(sample["json"])
        if facts is None:
            return "", reason
        if self.label_key not in facts:
            return "", f"its .json has no key {self.label_key!r} (webdataset.label)"
        value = facts[self.label_key]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | str):
            return "", f"{self.label_key!r} of its .json is no whole number and no text"
        return _one_line(str(value), f"{self.label_key!r} of its .json")


def key_and_extension(name: str) -> tuple[str, str]:
    """The key of the sample that a member belongs to, and its extension in lower case."""
    folder, slash, base = name.rpartition("/")
    stem, _, extension = base.partition(".")
    return folder + slash + stem, extension.lower()


def _text_of(member: Member) -> tuple[str, str]:
    """The class in a ``.cls``, or nothing and the reason."""
    if member.content is None:
        return "", _unread(member, ".cls", KEPT_BELOW_BYTES)
    try:
        return _one_line(member.content.decode("utf-8-sig"), "its .cls")
    except UnicodeDecodeError:
        return "", "its .cls is no UTF-8 text"


def _json_of(member: Member) -> tuple[dict[str, object] | None, str]:
    """The object in a ``.json``, or None and the reason."""
    if member.content is None:
        return None, _unread(member, ".json", LARGEST_JSON_BYTES)
    try:
        facts = json.loads(member.content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None, "its .json is no JSON"
    if not isinstance(facts, dict):
        return None, "its .json is no JSON object"
    return facts, ""


def _unread(member: Member, title: str, limit_bytes: int) -> str:
    """Why the content of a member is not known."""
    if member.problem is not None:
        return f"its {title}: {member.problem.reason}"
    return f"its {title} has {limit_bytes / 1024:,.0f} KiB or more"


def _one_line(text: str, title: str) -> tuple[str, str]:
    """``text`` without blanks at its ends, or nothing and the reason why it is no class."""
    text = text.strip()
    if not text:
        return "", f"{title} is empty"
    if len(text) > _LONGEST_CLASS:
        return "", f"{title} has more than {_LONGEST_CLASS:,} characters"
    if _is_no_line(text):
        return "", f"{title} has several lines or control characters"
    return text, ""
