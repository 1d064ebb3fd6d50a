"""Every contender of the contest of loaders delivers each sample once; the docs get the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import loader_peers, loaders, loaders_page
from benchmarks.__main__ import raw
from benchmarks.contest import Contender, Contest, Measured, Rounds
from benchmarks.loader_data import Forms
from benchmarks.loader_peers import Location
from benchmarks.rounds import missing, once
from benchmarks.workplace import Workplace
from dataprep.drawn import draw_tree
from iobench.servers.moto_server import MotoServer

IMAGES = 60


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """Return a workplace with drawn images in three classes."""
    photos = draw_tree(tmp_path_factory.mktemp("photos") / "drawn", images=IMAGES, classes=3).root
    return Workplace(tmp_path_factory.mktemp("bench"), photos, IMAGES)


@pytest.fixture(scope="module")
def contests(workplace: Workplace) -> dict[str, Contest]:
    """Return the contests from the disk and from S3, by name."""
    return {contest.name: contest for contest in loaders.contests(workplace)}


@pytest.mark.slow
def test_every_library_is_in_both_contests(contests: dict[str, Contest]) -> None:
    """Each library runs or says why it cannot, and ours comes first."""
    libraries = ("dataprep", "DALI", "LitData", "webdataset", "MosaicML", "SPDL", "tf.data")
    for contest in contests.values():
        names = [contender.name for contender in contest.contenders]
        assert names[0].startswith("dataprep.to_torch")
        for library in (*libraries, "MXNet", "torch"):
            assert any(name.startswith(library) for name in names)
        for contender in contest.contenders:
            assert bool(contender.run) != bool(contender.unable)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("name", ["loaders-disk", "loaders-s3"])
def test_loaders_that_are_installed_deliver_every_sample(
    name: str, contests: dict[str, Contest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each runs in a fresh process and has the rate of each epoch; ours run everywhere."""
    for key, value in MotoServer.ENVIRONMENT.items():
        monkeypatch.setenv(key, value)
    able = [
        candidate
        for candidate in contests[name].contenders
        if not candidate.unable and not missing(candidate)
    ]
    ours = [candidate for candidate in able if candidate.name.startswith("dataprep")]
    assert len(ours) == 2
    for contender in able:
        measured = once(contender, 2)
        assert measured.amount == IMAGES * contender.arguments["epochs"]
        assert measured.others["second_epoch_img/s"] > 0
        assert ("store_cpu_share" in measured.others) == (name == "loaders-s3")


def batches(*labels: int, dtype: Any = np.float32, low: float = -1.0) -> Any:
    """Return a function that makes a loader of one batch with these labels in every epoch."""

    def construct(location: Location) -> Any:
        def epoch(number: int) -> Iterator[tuple[Any, Any]]:
            images = np.full((len(labels), 3, 224, 224), low, dtype)
            yield images, np.array(labels)

        return epoch

    return construct


@pytest.mark.slow
@pytest.mark.parametrize(
    ("copies", "pixels", "message"),
    [
        (0, {}, "1 are missing and 0 come twice"),
        (2, {}, "0 are missing and 1 come twice"),
        (1, {"dtype": np.uint8, "low": 0}, "a batch has uint8 images"),
        (1, {"low": 0.0}, "not normalised"),
    ],
)
def test_a_loader_that_does_other_work_is_refused(
    copies: int,
    pixels: dict[str, Any],
    message: str,
    workplace: Workplace,
    contests: dict[str, Contest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loader misses the first sample, has it twice, or hands over other pixels."""
    arguments = contests["loaders-disk"].contenders[0].arguments
    right = list(expected(arguments["root"]).elements())
    wrong = [*[right[0]] * copies, *right[1:]]

    def run(construct: Any) -> Measured:
        monkeypatch.setattr(loader_peers, "made", construct, raising=False)
        request = {**arguments, "build": "benchmarks.loader_peers:made", "imports": []}
        return loaders.measured(**request)

    assert run(batches(*right)).amount == 3 * IMAGES
    with pytest.raises(RuntimeError, match=message):
        run(batches(*wrong, **pixels))


def expected(root: str) -> Counter[int]:
    """Return how many images each class has, by its label."""
    return Forms(Path(root)).labels()


def saved(folder: Path) -> None:
    """Write a result of two rounds: one library in two ways, two that were not read from S3."""
    runs = {
        "dataprep.to_torch, 2 threads": [600, 600],
        "Fast 1.0, uint8": [300, 300],
        "Fast 1.0, README's": [200, 200],
        "Local 2.0": [150, 150],
        "Slow 3.0": [100, 100],
    }
    unable_on_s3 = {"Local 2.0": "it opens files", "Slow 3.0": "not run: it takes minutes"}
    contests = []
    for name in ("loaders-disk", "loaders-s3"):
        unable = unable_on_s3 if name == "loaders-s3" else {}
        contenders = tuple(
            Contender(
                run, "" if run in unable else "a:b", {"epochs": 3}, unable=unable.get(run, "")
            )
            for run in runs
        )
        measured = {
            run: [Measured(rate, 1.0) for rate in rates]
            for run, rates in runs.items()
            if run not in unable
        }
        contest = Contest(name, f"Title of {name}", "img", contenders)
        contests.append((contest, Rounds(measured, unable)))
    workplace: Any = SimpleNamespace(root="/nowhere/work", photos="/nowhere/photos")
    (folder / "result.json").write_text(raw(contests, workplace))


def test_the_pages_get_the_tables_of_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """README has each library's fastest way, the page has all; the text around stays."""
    saved(tmp_path)
    readme, page = tmp_path / "README.md", tmp_path / "page.md"
    for path in (readme, page):
        path.write_text("before\n<!-- loaders -->\nold\n<!-- end of loaders -->\nafter\n")
    arguments = ["loaders_page", "--result", str(tmp_path), "--readme", str(readme)]
    monkeypatch.setattr("sys.argv", [*arguments, "--page", str(page), "--note", "It was busy."])
    loaders_page.main()
    for text in (readme.read_text(), page.read_text()):
        assert text.startswith("before\n")
        assert text.endswith("after\n")
        assert "old" not in text
        assert "200 JPEGs" in text
        assert "2 interleaved rounds" in text
        assert "It was busy." in text
    rows = readme.read_text().splitlines()
    both = "300 (300 to 300) | 2 (2 to 2)"
    assert f"| Fast 1.0 | {both} | {both} |" in rows
    assert "| Local 2.0 | 150 (150 to 150) | 4 (4 to 4) | not supported |  |" in rows
    assert "| Slow 3.0 | 100 (100 to 100) | 6 (6 to 6) | not run |  |" in rows
    assert "| Fast 1.0, README's | 200 (200 to 200) | 3 (3 to 3) |" in page.read_text()
    assert "| Local 2.0 | it opens files |  |" in page.read_text()


def test_a_page_without_marks_is_refused() -> None:
    """The text of a page without the end mark is not replaced."""
    with pytest.raises(ValueError, match="end of loaders"):
        loaders_page.replaced("<!-- loaders -->", "table")


def test_the_documentation_has_the_marks() -> None:
    """The next run finds where its tables go."""
    for path in (loaders_page.README, loaders_page.PAGE):
        loaders_page.replaced(path.read_text(), "table")
