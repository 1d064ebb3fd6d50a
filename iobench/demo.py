"""``make demo``: draw images, shard them to an S3 endpoint of its own, verify, benchmark."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from iobench.s3_server import MotoServer

_IMAGES, _CLASSES = 1000, 8
_BUCKET = "demo"
_CONFIG = Path("configs/bench/smoke.yaml")


def main() -> int:
    """Run the demo in ``demo/``; the exit code."""
    argparse.ArgumentParser(prog="iobench.demo", description=__doc__).parse_args()
    folder = Path("demo")
    shutil.rmtree(folder, ignore_errors=True)
    started_s = time.monotonic()
    photos, shards = folder / "photos", folder / "shards"
    plain = dict(os.environ)
    with MotoServer() as server:
        server.create_bucket(_BUCKET)
        environment = {**os.environ, **MotoServer.ENVIRONMENT, "AWS_ENDPOINT_URL": server.url}
        output = f"s3://{_BUCKET}/photos"
        for step in (
            ["sample", str(photos), "--images", str(_IMAGES), "--classes", str(_CLASSES)],
            [
                *("shard", "--source", str(photos), "--output", output),
                *("--format", "tfrecord", "--format", "recordio", "--size", "256"),
                *("--shard-size", "4MB", "--validation", "10%"),
            ],
            ["verify", output, "--deep"],
        ):
            if status := _call("dataprep", step, environment):
                return status
        _copy(server, shards)
    # The benchmark has a server of its own: the one above would share the processor with it.
    data = ["--set", f"data.shards={shards}", "--set", f"data.folder={folder / 'data'}"]
    run = ["run", str(_CONFIG), "--output", str(folder / "bench"), *data]
    if status := _call("iobench", run, plain):
        return status
    _say(
        f"\ndone in {time.monotonic() - started_s:.0f} s. The endpoint kept everything in memory "
        "and is gone; what it held is here:\n"
        f"  {photos}/                     the images that were drawn\n"
        f"  {folder}/shards/tfrecord/           shards for TensorFlow and DALI\n"
        f"  {folder}/shards/recordio/           the same images for MXNet\n"
        f"  {folder}/shards/index/              DALI's and MXNet's indexes, .lst\n"
        f"  {folder}/shards/train.samples.parquet   one row an image\n"
        f"  {folder}/shards/train.manifest.json     what was made, of what, with what\n"
        f"  {folder}/bench/report.html          the benchmark: open it in a browser\n"
        "Next, with your own: .venv/bin/dataprep shard --source photos/ --output shards/ "
        "--format tfrecord --size 256"
    )
    return 0


def _call(program: str, arguments: list[str], environment: Mapping[str, str]) -> int:
    _say(f"\n$ {program} {' '.join(arguments)}")
    command = [sys.executable, "-m", program, *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


def _copy(server: MotoServer, dest: Path) -> None:
    from dataprep.stores import StoreOptions, open_store

    os.environ.update(MotoServer.ENVIRONMENT)
    source = open_store(f"s3://{_BUCKET}/photos", StoreOptions(endpoint_url=server.url))
    target = open_store(str(dest))
    target.prepare()
    for info in source.list():
        target.put(info.key, source.get(info.key))


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    raise SystemExit(main())
