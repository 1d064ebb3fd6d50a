"""``dataprep plan`` predicts what ``dataprep shard`` then does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.httpsession import URLLib3Session

from dataprep.drawn import SampleTree, draw_tree
from dataprep.stores import StoreOptions
from dataprep.stores.local import LocalStore
from dataprep.stores.s3 import S3Store
from iobench.servers.moto_server import MotoServer
from tests.commandline import JOB, Finished, files, in_process, upload

pytestmark = pytest.mark.slow


def run(
    command: str, source: str | Path, output: str | Path, *more: str, code: int | None = None
) -> Finished:
    """Run a command with the job's options in this process."""
    arguments = (command, "--source", source, "--output", output, "--workers", "2")
    return in_process(*arguments, *more, code=code)


def planned(source: str | Path, output: str | Path, *more: str) -> Any:
    """The JSON of ``plan --json``."""
    done = run("plan", source, output, *more, "--json", code=0)
    return done.one_object


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> SampleTree:
    """A tree of 240 images and every defect. Read only."""
    dest = tmp_path_factory.mktemp("broken") / "photos"
    return draw_tree(dest, images=240, classes=4, seed=5, defects=True)


@pytest.mark.parametrize(
    "job",
    [JOB, (*JOB, "--size", "96", "--validation", "20%"), ("--format", "recordio", "--size", "64")],
    ids=["as they are", "two splits", "one shard"],
)
def test_samples_shards_and_bytes(tree: Path, tmp_path: Path, job: tuple[str, ...]) -> None:
    """Samples and shards are exactly those of the job, and bytes agree within 10 % in total."""
    output = tmp_path / "out"
    plan = planned(tree, output, *job)
    assert not output.exists()
    content = run("shard", tree, output, *job, "--json").one_object["splits"]
    assert [split["split"] for split in plan["splits"]] == [split["split"] for split in content]
    predicted = stored_samples = 0
    for before, after in zip(plan["splits"], content, strict=True):
        assert before["samples"] == after["samples"]["total"]
        for name, entry in after["formats"].items():
            assert before["shards"] == entry["shards"]
            assert plan["label_offsets"][name] == entry["label_offset"]
            predicted += before["bytes_by_format"][name]
            stored_samples += entry["bytes"]
    assert abs(predicted - stored_samples) <= 0.1 * stored_samples


def test_bytes_where_only_some_are_converted(broken: SampleTree, tmp_path: Path) -> None:
    """A sample of a larger tree with defects predicts the number of bytes within 10 %."""
    job = (*JOB, "--size", "128", "--max-failures", "100%")
    plan = planned(broken.root, tmp_path / "out", *job)
    assert plan["outcome"]["trial"] == 200 < plan["outcome"]["samples"]
    (content,) = run("shard", broken.root, tmp_path / "out", *job, "--json").one_object["splits"]
    for name, entry in content["formats"].items():
        assert abs(plan["splits"][0]["bytes_by_format"][name] / entry["bytes"] - 1) <= 0.1
    counts = content["samples"]
    refused = sum(plan["refused"].values())
    assert plan["entries"] == counts["total"] == plan["splits"][0]["samples"] + refused


def test_what_policies_meet_is_exact_for_few(broken_tree: SampleTree, tmp_path: Path) -> None:
    """If all samples were converted, the counts are exactly those of the manifest."""
    job = ("--size", "128", "--max-failures", "100%")
    plan = planned(broken_tree.root, tmp_path / "out", *job)
    (content,) = run("shard", broken_tree.root, tmp_path / "out", *job, "--json").one_object[
        "splits"
    ]
    met_counts = plan["outcome"]["met"]
    warned = {k: n for k, n in content["warnings"].items() if k != "shards_out_of_bounds"}
    refused = sum(n for reason, n in plan["refused"].items() if reason.startswith("failed"))
    warned["failed_refused"] -= refused
    assert met_counts == {kind: count for kind, count in warned.items() if count}
    share = content["samples"]["passthrough"] / plan["outcome"]["samples"]
    assert plan["outcome"]["passthrough"] == pytest.approx(share)
    text = run("plan", broken_tree.root, tmp_path / "other", *job).out
    assert f"(from {plan['outcome']['samples']} conversions)" in text
    assert "failed: broken symlink: 1" in text


def test_in_words(tree: Path, tmp_path: Path) -> None:
    """The text has samples, shards, time and policies, and says that nothing was written."""
    done = run("plan", tree, tmp_path / "out", *JOB, "--readers", "64", code=0)
    assert f"train: 120 photos would become 11 shards per format in {tmp_path / 'out'}" in done.out
    assert "labels from 1" in done.out
    assert "labels from 0" in done.out
    assert "with 2 workers" in done.out
    assert "100% stored unchanged" in done.out
    assert "warning: train: 11 shards cannot be shared by 64 readers" in done.out
    assert done.out.endswith("Nothing was written.\n")
    assert not (tmp_path / "out").exists()


def test_what_shard_will_say_and_refuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plan warns of failures above the limit, of a full disk, and of each note of shard."""
    tree = draw_tree(tmp_path / "photos", images=40, classes=4, seed=5, defects=True).root
    (tree / "n00000001").mkdir()
    job = ("--size", "64", "--set", "image.min_size=20", "--shard-size", "1MB")
    warnings = planned(tree, tmp_path / "out", *job)["warnings"]
    notes = run("shard", tree, tmp_path / "out", *job, "--max-failures", "100%").err.splitlines()
    for part in ("of ImageNet's 1,000 classes", "shard size", "1 folder without images"):
        (note,) = [line for line in notes if part in line]
        assert note in warnings
    text = run("plan", tree, tmp_path / "none", *job).out
    (content,) = run(
        "shard", tree, tmp_path / "made", *job, "--max-failures", "100%", "--json"
    ).one_object["splits"]
    failed, written = content["samples"]["failed"], content["samples"]["written"]
    assert written > 0
    assert f"({failed} of {content['samples']['total']} fail)" in text
    (warning,) = [line for line in warnings if "shard would stop" in line]
    share = 100 * failed // content["samples"]["total"] + 1
    assert warning.endswith(f"--max-failures 1% allows 0; give --max-failures {share}%")
    limit = ("--max-failures", str(failed))
    assert "would stop" not in run("plan", tree, tmp_path / "none", *job, *limit).out
    assert run("shard", tree, tmp_path / "enough", *job, *limit).code == 0
    monkeypatch.setattr(LocalStore, "free_bytes", lambda store: 1_000)
    full = run("plan", tree, tmp_path / "none", *job)
    assert "warning: shard would refuse: about " in full.out
    assert full.code == 0


def test_refusals_are_those_of_shard(tree: Path, tmp_path: Path) -> None:
    """plan refuses what shard refuses: a missing source, a wrong config, labels that do not fit."""
    output = tmp_path / "out"
    assert run("shard", tree, output).code == 0
    other = draw_tree(tmp_path / "other", images=40, classes=9, seed=1).root
    before = files(output)
    for source, location, more, message in (
        (tmp_path / "none", tmp_path / "new", (), "none"),
        (tree, tree / "out", (), "inside the source"),
        (tree, tmp_path / "new", ("--prices", str(tmp_path / "none.yaml")), "none.yaml"),
        (other, output, ("--split", "validation"), "labels.json"),
    ):
        done = run("plan", source, location, *more, code=2)
        assert message in done.complaints[0]
    assert "already has a job of train" in run("plan", tree, output).out
    assert files(output) == before


class TestOnS3:
    @pytest.fixture
    def counts(self, monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
        """The number of requests from now on, by kind and store."""
        requests: Counter[tuple[str, str]] = Counter()
        send = URLLib3Session.send

        def counting(session: URLLib3Session, request: AWSPreparedRequest) -> object:
            side = "source" if "photos" in request.url else "output"
            lists = "list-type=2" in request.url or "?uploads" in request.url
            kind = "LIST" if lists and request.method == "GET" else request.method or ""
            requests[side, kind] += 1
            return send(session, request)

        monkeypatch.setattr(URLLib3Session, "send", counting)
        return requests

    @pytest.mark.parametrize(
        "job", [JOB, ("--size", "64", "--validation", "20%")], ids=["one split", "two splits"]
    )
    def test_requests_are_those_that_are_sent(
        self,
        tree: Path,
        bucket: str,
        s3_server: MotoServer,
        counts: Counter[tuple[str, str]],
        job: tuple[str, ...],
    ) -> None:
        """The estimated numbers of requests are correct within a tenth and a few."""
        store = S3Store(f"s3://{bucket}/photos", StoreOptions(endpoint_url=s3_server.url))
        upload(tree, store)
        arguments = (f"s3://{bucket}/photos", f"s3://{bucket}/out", *job)
        arguments = (*arguments, "--endpoint-url", s3_server.url)
        plan = planned(*arguments)
        assert not list(S3Store(f"s3://{bucket}/out", store.options).list())
        counts.clear()
        assert run("shard", *arguments).code == 0
        for where in ("source", "output"):
            sent = {
                "puts": counts[where, "PUT"],
                "gets": counts[where, "GET"] + counts[where, "HEAD"],
                "lists": counts[where, "LIST"],
            }
            for kind, count in plan["requests"][where].items():
                assert count == pytest.approx(sent[kind], rel=0.1, abs=12), (where, kind)
        assert plan["cost"] is None

    def test_cost(self, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """On Amazon's own endpoint, requests, storage and a known machine have prices."""
        monkeypatch.setattr(S3Store, "list", lambda store, prefix="": iter(()))
        arguments = (tree, "s3://bucket/out", "--set", "store.region=us-east-1")
        plan = planned(*arguments, "--set", "plan.instance=c7i.16xlarge")
        requests = plan["requests"]["output"]
        dollars = (requests["puts"] + requests["lists"]) * 5e-6 + requests["gets"] * 4e-7
        assert plan["cost"]["requests"] == pytest.approx(dollars)
        stored_bytes = plan["splits"][0]["bytes_by_format"]["tfrecord"]
        assert plan["cost"]["month"] == pytest.approx(stored_bytes / 2**30 * 0.023)
        hours = plan["duration"]["total"] / 3600
        assert plan["cost"]["machine"] == pytest.approx(2.856 * hours)
        plan = planned(*arguments, "--set", "plan.instance=c9")
        assert plan["cost"]["machine"] is None
        assert any("has no price for c9 in us-east-1" in line for line in plan["warnings"])
        assert "https://aws.amazon.com/s3/pricing/ as of" in run("plan", *arguments).out
        assert planned(*arguments, "--set", "store.storage_class=GLACIER")["cost"] is None

    def test_a_bucket_in_another_region(
        self, tree: Path, bucket: str, s3_server: MotoServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A bucket in another region causes a warning with the cost; one in this region none."""
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.url)
        for region, warned in (("eu-west-1", True), ("us-east-1", False)):
            monkeypatch.setenv("AWS_REGION", region)
            plan = planned(tree, f"s3://{bucket}/out")["warnings"]
            reported = [line for line in plan if f"in us-east-1, this machine in {region}" in line]
            assert bool(reported) == warned
