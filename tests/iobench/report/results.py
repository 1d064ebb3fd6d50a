"""Results as runs leave them, drawn from a seed: for tests of the report."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

from iobench.result import Finding, Result
from iobench.stats import estimate, ratio
from iobench.trial import Cold, Trial, TrialSpec

HOSTILE = "<script>alert(1)</script>"

PROVED = Cold("cold", "cold", 0.0, 0.998, True, "nothing resident, every byte was read")
UNPROVED = Cold("cold", "warm", 0.34, 0.61, True, "34 % of the pages stayed resident (overlay)")
WARM = Cold("warm", "warm", 1.0, 0.0, True, "")
DIRECT = Cold("direct", "direct", None, 1.0, None, "O_DIRECT")
SERVER = Cold("cold", "server cache unknown", None, None, None, "a remote store's cache is unseen")
NONE = Cold("warm", "not applicable")

ENVIRONMENT = {
    "iobench": "0.3.0",
    "python": "3.11.2",
    "kernel": "Linux 6.8.0",
    "processor": "AMD EPYC 9354 32-Core Processor",
    "processors": 16,
    "memory_bytes": 128 * 2**30,
    "gpus": [{"name": "NVIDIA H200", "memory.total": "143771 MiB", "driver_version": "570.86"}],
    "libraries": {"numpy": "2.4.1", "torch": "2.13.0", "boto3": "1.40.2", "simplejpeg": "1.9.0"},
    "targets": {"nvme": {"file_system": "xfs", "mount_options": "rw", "total_bytes": 64 * 10**9}},
}


class Run:
    """Trials are added one by one; values scatter by 3 %."""

    def __init__(self, name: str = "train-resnet50", repeats: int = 6, seed: int = 7) -> None:
        self.name = name
        self.repeats = repeats
        self.trials: list[Trial] = []
        self.summary: dict[str, Any] = {}
        self.series: list[pd.DataFrame] = []
        self._random = random.Random(seed)

    def scattered(self, value: float) -> float:
        """Close to it."""
        return value * self._random.uniform(0.97, 1.03)

    def add(
        self, kind: str, params: dict[str, Any], cold: Cold | None = None, **metrics: Any
    ) -> list[float]:
        """Repeats of one cell; gives back their first metric."""
        main = next(iter(metrics))
        values = []
        for repeat in range(self.repeats):
            spec = TrialSpec(kind, params, repeat)
            found = {
                key: self.scattered(value) if isinstance(value, float) else value
                for key, value in metrics.items()
            }
            self.trials.append(
                Trial(spec.id, kind, params, repeat, "done", found, cold, seconds=self.scattered(4))
            )
            values.append(found[main])
        return values

    def stop(self, kind: str, params: dict[str, Any], status: Any, reason: str) -> None:
        """A cell that failed or was skipped."""
        for repeat in range(self.repeats):
            spec = TrialSpec(kind, params, repeat)
            self.trials.append(
                Trial(spec.id, kind, params, repeat, status, reason=reason, seconds=0.2)
            )

    def disks(
        self, targets: Sequence[tuple[str, float]] = (("nvme", 1600.0), ("ebs", 250.0))
    ) -> Run:
        """Block sizes and parallelism, direct, cold and warm."""
        for target, peak in targets:
            for cache, cold, gain in (
                ("direct", DIRECT, 1),
                ("cold", PROVED, 0.9),
                ("warm", WARM, 4),
            ):
                for block in (4096, 16384, 65536, 262144, 1 << 20, 4 << 20):
                    rate = peak * gain * block / (block + 90_000)
                    self._disk(target, "read", "sequential", block, 8, cache, cold, rate)
                for parallelism in (1, 2, 4, 16):
                    rate = peak * gain * parallelism / (parallelism + 1.5)
                    self._disk(
                        target, "read", "sequential", 1 << 20, parallelism, cache, cold, rate
                    )
            for block in (4096, 65536, 1 << 20):
                rate = peak * block / (block + 300_000)
                self._disk(target, "read", "random", block, 8, "direct", DIRECT, rate)
                self._disk(target, "write", "sequential", block, 8, "direct", None, rate * 0.7)
        return self

    def _disk(
        self,
        target: str,
        operation: str,
        pattern: str,
        block: int,
        parallelism: int,
        cache: str,
        cold: Cold | None,
        rate: float,
        **more: str,
    ) -> None:
        params = {
            "target": target,
            "operation": operation,
            "pattern": pattern,
            "block_bytes": block,
            "parallelism": parallelism,
            "cache": cache,
            **more,
        }
        self.add(
            "disk",
            params,
            cold,
            mb_per_s=rate,
            iops=rate * 1e6 / block,
            bytes=1 << 30,
            seconds=1074 / rate,
            operations=(1 << 30) // block,
            latency_s_p50=parallelism * block / rate / 1e6,
            latency_s_p90=1.6 * parallelism * block / rate / 1e6,
        )

    def layouts(self) -> Run:
        """Shards, records and small files."""
        for data, access, rate in (
            ("shards@nvme", "shards", 30_000.0),
            ("shards@nvme", "records", 9_000.0),
            ("files@nvme", "files", 5_200.0),
        ):
            for cache, cold, gain in (("cold", PROVED, 1), ("warm", WARM, 2.5)):
                for parallelism in (1, 4, 16):
                    value = rate * gain * parallelism / (parallelism + 2)
                    self.add(
                        "layout",
                        {
                            "data": data,
                            "access": access,
                            "cache": cache,
                            "parallelism": parallelism,
                        },
                        cold,
                        samples_per_s=value,
                        mb_per_s=value * 0.042,
                        samples=20_000,
                    )
        return self

    def stores(self) -> Run:
        """Object sizes and connections, two clients."""
        for client, link in (("boto3", 800.0), ("obstore", 1100.0)):
            for operation, gain in (("get", 1.0), ("range_get", 0.93), ("put", 0.5)):
                for size in (5_000, 100_000, 1_000_000, 8_000_000, 32_000_000, 128_000_000):
                    self._object(client, operation, size, 8, link * gain * size / (size + 1.2e6))
                for connections in (1, 2, 4, 16, 32):
                    rate = link * gain * connections / (connections + 3)
                    self._object(client, operation, 8_000_000, connections, rate)
            self.summary.setdefault("object_stores", []).append(
                {
                    "store": "moto",
                    "client": client,
                    "operation": "get",
                    "peak_mb_per_s": link,
                    "object_bytes_95": 32_000_000,
                    "connections_95": 16,
                }
            )
        return self

    def _object(
        self, client: str, operation: str, size: int, connections: int, rate: float
    ) -> None:
        params = {
            "store": "moto",
            "client": client,
            "operation": operation,
            "object_bytes": size,
            "connections": connections,
        }
        self.add(
            "object",
            params,
            SERVER,
            mb_per_s=rate,
            requests_per_s=rate * 1e6 / size,
            bytes=size * 200,
            seconds=1.0,
            requests=200,
            first_byte_s_p50=0.012,
            first_byte_s_p90=0.031,
            body_s_p50=size / 9e7,
            body_s_p90=size / 6e7,
            errors={"503": 2} if size == 5_000 else {},
            retries=int(size == 5_000),
        )

    def loaders(self, data: str = "shards@nvme") -> Run:
        """Workers and batch sizes, warm and cold."""
        for loader, one in (("tf-data", 900.0), ("torch-map", 520.0), ("mxnet-record", 610.0)):
            for cache, cold, gain in (("warm", WARM, 1), ("cold", PROVED, 0.8)):
                for workers in (1, 2, 4, 8, 16):
                    for batch in (64, 256):
                        rate = (
                            one * gain * 16 * workers / (workers + 15) * (1.05 if batch > 64 else 1)
                        )
                        self._loader(loader, data, cache, cold, workers, batch, rate)
        self._loader("torch-folder", "files@nvme", "cold", UNPROVED, 8, 64, 2_100.0)
        self._loader("raw", data, "cold", PROVED, 8, 64, 24_000.0)
        self._loader("torch-map", "shards@s3", "cold", SERVER, 8, 64, 3_300.0)
        return self

    def _loader(
        self, loader: str, data: str, cache: str, cold: Cold, workers: int, batch: int, rate: float
    ) -> None:
        params = {
            "loader": loader,
            "data": data,
            "cache": cache,
            "workers": workers,
            "batch_size": batch,
            "prefetch": 2,
            "decode": True,
            "augment": True,
        }
        self.add(
            "loader",
            params,
            cold,
            samples_per_s=rate,
            mb_per_s=rate * 0.042,
            samples=20_000,
            seconds=20_000 / rate,
            time_to_first_batch_s=0.7,
            batch_wait_s_p50=batch / rate,
            batches=20_000 // batch,
            notes=["copies shards ahead"] if "s3" in data else [],
        )

    def shard_sizes(self) -> Run:
        """The same images as small files and as shards of several sizes."""
        for loader, best in (("tf-data", 2_400.0), ("torch-map", 1_500.0)):
            for size in (1, 4, 16, 64, 128):
                self._loader(
                    loader, f"shards-{size}MB@disk", "cold", PROVED, 4, 64, best * size / (size + 2)
                )
        self._loader("torch-folder", "files@disk", "cold", PROVED, 4, 64, 260.0)
        return self

    def training(
        self,
        group: str = "resnet50-torch",
        consumes: float = 6800.0,
        warm: float = 5100.0,
        cold: float = 4150.0,
        emulated: bool = False,
        shown: Cold = PROVED,
        steps: int = 240,
    ) -> Run:
        """Synthetic, warm, cold; figures of the summary from them."""
        device = f"preset {group}" if emulated else "NVIDIA H200"
        base = {
            "group": group,
            "consumer": "paced" if emulated else "torch",
            "model": "resnet50",
            "batch_size": 256,
            "precision": "float16",
            "loader": "torch-map",
            "data": "shards@nvme",
            "workers": 16,
        }
        rates = {}
        for name, rate, cache in (
            ("synthetic", consumes, None),
            ("warm", warm, WARM),
            ("cold", cold, shown),
        ):
            params = {**base, "input": name}
            rates[name] = self.add(
                "train",
                params,
                cache,
                samples_per_s=rate,
                samples=steps * 256,
                steps=steps,
                time_to_first_batch_s=1.3,
                step_s_p50=256 / rate,
                step_s_p90=300 / rate,
                wait_share=max(0.0, 1 - rate / consumes),
                au_mlperf=min(1.0, rate / consumes * 1.04),
                emulated=emulated,
                device=device,
                precision="float16",
                notes=[],
            )
            first = TrialSpec("train", params, 0).id
            self.series.append(self._steps(first, rate, consumes, steps))
        unfed = [1 - c / s for c, s in zip(rates["cold"], rates["synthetic"], strict=True)]
        au = asdict(ratio(rates["cold"], rates["synthetic"]))
        entry = {
            "group": group,
            "consumer": base["consumer"],
            "model": "resnet50",
            "device": device,
            "precision": "float16",
            "emulated": emulated,
            "loader": "torch-map",
            "data": "shards@nvme",
            "label": shown.label,
            "input": "cold",
            "workers": 16,
            "consumes": asdict(estimate(rates["synthetic"])),
            "warm": asdict(estimate(rates["warm"])),
            "cold": asdict(estimate(rates["cold"])),
            "au_ceiling": au,
            "au_mlperf": asdict(
                estimate(
                    [c * 1.04 / s for c, s in zip(rates["cold"], rates["synthetic"], strict=True)]
                )
            ),
            "stall_fraction": asdict(estimate(unfed)),
            "preparation_stall": asdict(estimate([0.2, 0.21, 0.19])),
            "fetch_stall": asdict(estimate([0.18, 0.2, 0.17])),
            "cold_proved": shown is PROVED,
        }
        self.summary.setdefault("training", []).append(entry)
        self.summary.setdefault(
            "verdict",
            (
                f"The training loop gets {100 * au['median']:.0f} % of what this device can "
                "consume; reading and decoding cost the rest."
            ),
        )
        return self

    def _steps(self, trial: str, rate: float, consumes: float, steps: int) -> pd.DataFrame:
        ends, waits, now = [], [], 0.0
        for step in range(steps):
            wait = max(0.0, 256 / rate - 256 / consumes) * self._random.expovariate(1)
            if step % 60 == 30 and rate < consumes:
                wait += 0.09
            now += 256 / consumes * self._random.uniform(0.97, 1.03) + wait
            ends.append(now)
            waits.append(wait)
        return pd.DataFrame(
            {
                "trial": trial,
                "step": range(steps),
                "step_end_s": ends,
                "wait_s": waits,
                "compute_s": 256 / consumes,
            }
        )

    def result(self, **changes: Any) -> Result:
        """As saved so far."""
        made = Result(
            self.name,
            "2026-11-21T14:35:00+00:00",
            ENVIRONMENT,
            {"name": self.name, "repeats": self.repeats, "loaders": [{"loader": "tf-data"}]},
            tuple(self.trials),
            self.summary,
        )
        return replace(made, **changes)

    def table(self) -> pd.DataFrame | None:
        """Series, as stored."""
        return pd.concat(self.series, ignore_index=True) if self.series else None


def full(repeats: int = 6) -> Run:
    """Every kind, with trials that were skipped and that failed."""
    run = Run(repeats=repeats).training().disks().layouts().stores().loaders()
    run.stop(
        "loader",
        {"loader": "mxnet-record", "data": "shards@nvme", "cache": "warm"},
        "skipped",
        "mxnet is not installed: pip install 'dataprep-iobench[mxnet]'",
    )
    run.stop(
        "object",
        {
            "store": "private",
            "client": "boto3",
            "operation": "get",
            "object_bytes": 8_000_000,
            "connections": 1,
        },
        "failed",
        "s3://private: access denied (403): the bucket may not be listed",
    )
    return run


FINDINGS = (
    Finding(
        "input_bound",
        "problem",
        "wait share 39 % of a step, above 20 %",
        "more workers (16 of 16 cores are in use) or smaller images: dataprep shard --size 256",
    ),
    Finding("time_to_first_batch", "info", "1.3 s of 62 s", "nothing to do"),
)


def shapes() -> Iterator[tuple[str, Run]]:
    """Runs of every shape that a page must stand."""
    yield "full", full()
    yield "nothing", Run("empty")
    yield "disks", Run("disk").disks()
    yield "one-repeat", Run("smoke", repeats=1).training().loaders()
    failed = Run("failed", repeats=2)
    failed.stop(
        "loader", {"loader": "raw", "data": "shards@disk", "cache": "cold"}, "failed", "it broke"
    )
    failed.stop("train", {"group": "a", "input": "warm"}, "failed", "timed out after 600 s")
    yield "all-failed", failed
    emulated = Run("emulated", repeats=3).training(
        "paced-h100", 7000.0, 900.0, 640.0, emulated=True, shown=UNPROVED
    )
    yield (
        "emulated",
        emulated.training("paced-v100", 1200.0, 905.0, 1010.0, emulated=True).loaders(),
    )
    yield "shard-size", Run("shard-size").shard_sizes().layouts()
    yield "hostile", hostile()
    yield "many", Run("many", repeats=12).disks().loaders("shards@disk")


def hostile() -> Run:
    """Names that would be markup, a formula, or the end of the embedded result."""
    nasty = f"{HOSTILE}<img src=x onerror=alert(2)>$$x$$\\(y\\)@name{{safe}}"
    run = Run(f"{HOSTILE}--><!--<script>", repeats=2)
    run.training(group=nasty, steps=20)
    for workers in (1, 2, 4):
        run._loader(
            nasty,
            f"shards@{HOSTILE}",
            "cold",
            replace(PROVED, why=nasty),
            workers,
            8,
            100.0 * workers,
        )
        run._disk(nasty, "read", "sequential", 4096 * workers, 1, "cold", PROVED, 50.0 * workers)
        run._object(nasty, "get", 4096 * workers, 1, 50.0 * workers)
    run.stop("loader", {"loader": nasty, "data": "\udce9\u2028"}, "failed", nasty)
    run.summary["verdict"] = f"The loop reads {HOSTILE} too slowly."
    return run
