"""``make demo``: draw images, convert them to shards on a local S3 endpoint, and measure."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from iobench.servers.moto_server import MotoServer

_STEPS = """\
dataprep init demo
dataprep sample demo/photos --images 800 --classes 8
dataprep shard --source demo/photos --output s3://demo/photos --format tfrecord \
--format recordio --size 256 --shard-size 4MB --validation 10%
dataprep verify s3://demo/photos --deep
dataprep stage s3://demo/photos demo/shards"""
_BENCHMARK = """\
iobench run demo/configs/bench/smoke.yaml --output demo/bench --set data.shards=demo/shards \
--set data.folder=demo/data"""
_DONE = """
done in {seconds:.0f} s. The S3 endpoint has ended, and its objects with it. These files remain:
  demo/photos/                        the images that were drawn
  demo/shards/tfrecord/               shards for TensorFlow and DALI
  demo/shards/recordio/               the same images for MXNet
  demo/shards/index/                  DALI's and MXNet's indexes, .lst
  demo/shards/train.samples.parquet   one row per image
  demo/shards/train.manifest.json     the source, the options and the shards of the data set
  demo/bench/report.html              the benchmark: open it in a browser
Next, convert your own images: {program} shard --source photos/ --output shards/ \
--format tfrecord --size 256"""


def main() -> int:
    """Run the demo in ``demo/``, and return the exit code."""
    if Path("demo").exists():
        _say("demo/ already exists: remove it, or start in another folder")
        return 2
    started_s = time.monotonic()
    with MotoServer() as server:
        server.create_bucket("demo")
        environment = {**os.environ, **MotoServer.ENVIRONMENT, "AWS_ENDPOINT_URL": server.url}
        for step in _STEPS.splitlines():
            exit_code = _run(step, environment)
            if exit_code:
                return exit_code
    # The S3 server above has ended, because it would compete with the benchmark for the CPUs.
    exit_code = _run(_BENCHMARK, dict(os.environ))
    if not exit_code:
        program = os.path.relpath(Path(sys.executable).with_name("dataprep"))
        _say(_DONE.format(seconds=time.monotonic() - started_s, program=program))
    return exit_code


def _run(command: str, environment: dict[str, str]) -> int:
    _say(f"\n$ {command}")
    arguments = [sys.executable, "-m", *shlex.split(command)]
    return subprocess.run(arguments, env=environment, check=False).returncode


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    raise SystemExit(main())
