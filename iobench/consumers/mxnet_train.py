"""``mxnet``: a training loop in MXNet 1.9.1's Gluon, hybridised."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from iobench.clock import Clock
from iobench.consumers import batches, processor, requirements
from iobench.consumers.protocol import ConsumerSettings
from iobench.consumers.queue import NOTE, Queue
from iobench.consumers.warming import per_step_s, until_steady
from iobench.loaders.protocol import Batch, Framework

# Keeps small gradients of a float16 network above zero.
_FLOAT16_SCALE = 128


class MXNetConsumer:
    """SGD with momentum on cross entropy; see ``Consumer``.

    MXNet hands all work to an engine that runs behind. On a CPU each step waits for it, and
    ``compute_s`` is wall time; on a GPU ``compute_s`` is what a step took on average over
    several that ``warm_up`` ran without a pause on data that lay on the device.
    """

    framework: Framework = "mxnet"
    emulated = False

    def __init__(self, settings: ConsumerSettings, clock: Clock) -> None:
        mx = self._mx = requirements.framework("mxnet")
        self._settings, self._clock = settings, clock
        there = mx.context.num_gpus() > 0
        self._on_gpu = requirements.takes_gpu(settings.device, there, f"MXNet {mx.__version__}")
        self._context = mx.gpu() if self._on_gpu else mx.cpu()
        if self._on_gpu:
            self.precision = "float32" if settings.precision == "float32" else "float16"
            self.device = "GPU (MXNet does not tell which)"
        else:
            self.precision = requirements.cpu_precision(settings.precision, mixes=False)
            self.device = processor.describe(processor.threads("OMP_NUM_THREADS"))
        self.notes: Sequence[str] = tuple(self._notes())
        self._scale = _FLOAT16_SCALE if self.precision == "float16" else 1
        self.last_loss: Any = None
        self._nominal_s = 0.0
        self._compute_s: list[float] = []
        self._queue = Queue(lambda loss: loss.wait_to_read())
        self._build()

    def synthetic(self) -> Batch:
        """Normal noise (N, 3, S, S) and labels (N,), both float32, drawn on the device."""
        mx, settings = self._mx, self._settings
        mx.random.seed(settings.seed, ctx=self._context)
        size, samples = settings.image_size, settings.batch_size
        images = mx.nd.random.normal(shape=(samples, 3, size, size), ctx=self._context)
        labels = mx.nd.random.randint(0, settings.classes, (samples,), ctx=self._context)
        batch = Batch(images, labels.astype("float32"), samples)
        mx.nd.waitall()
        return batch

    def warm_up(self) -> None:
        """Build the graph on the synthetic batch; on a GPU, then see what a step takes."""
        step = partial(self.step, self.synthetic())
        until_steady(step, self.finish, self._clock, at_most=10 if self._on_gpu else 3)
        if self._on_gpu:
            self._nominal_s = per_step_s(step, self.finish, self._clock)
        self._compute_s.clear()

    def step(self, batch: Batch) -> None:
        """Copy, normalise, forward, backward, optimiser step; at most two queue on a GPU."""
        self._check(batch)
        began_s = self._clock.now_s()
        images = batch.images.as_in_context(self._context)
        self.last_loss = self._train(images, batch.labels.as_in_context(self._context))
        if self._on_gpu:
            self._compute_s.append(self._nominal_s)
            self._queue.add(self.last_loss)
        else:
            self.finish()
            self._compute_s.append(self._clock.now_s() - began_s)

    def finish(self) -> None:
        """Wait until the engine has nothing left to do."""
        self._queue.clear()
        self._mx.nd.waitall()

    def compute_s(self) -> Sequence[float]:
        """One entry a step."""
        return self._compute_s

    def _build(self) -> None:
        mx, settings = self._mx, self._settings
        mx.random.seed(settings.seed)
        models = importlib.import_module("iobench.consumers.mxnet_models")
        self._net = models.build(settings.model, settings.classes)
        self._net.initialize(mx.init.Xavier(magnitude=2), ctx=self._context)
        if self.precision == "float16":
            self._net.cast("float16")
        self._net.hybridize(static_alloc=True)
        self._loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
        self._loss.hybridize()
        options = {"learning_rate": 0.01, "momentum": 0.9, "wd": 1e-4}
        if self.precision == "float16":
            options["multi_precision"] = True
        self._trainer = mx.gluon.Trainer(self._net.collect_params(), "sgd", options)
        self._mean, self._std = (
            mx.nd.array(values, ctx=self._context).reshape((1, 3, 1, 1)) * 255
            for values in (batches.MEAN, batches.STD)
        )

    def _train(self, images: Any, labels: Any) -> Any:
        """The mean loss, (1,), which may not have been computed yet."""
        if images.dtype.__name__ == "uint8":
            images = (images.astype("float32") - self._mean) / self._std
        images = images.astype(self.precision, copy=False)
        with self._mx.autograd.record():
            losses = self._loss(self._net(images).astype("float32"), labels) * self._scale
        losses.backward()
        self._trainer.step(images.shape[0] * self._scale)
        return losses.mean() / self._scale

    def _check(self, batch: Batch) -> None:
        kind = self._mx.nd.NDArray
        batches.check_arrays(batch.images, batch.labels, kind, "MXNet arrays")
        dtype, size = batch.images.dtype.__name__, self._settings.image_size
        batches.check_images(batch.images.shape, dtype, size, channels_last=False)
        # Reading labels back from a GPU would make every step wait for it.
        if not batch.labels.context.device_type.startswith("gpu") and batch.samples:
            labels = batch.labels.asnumpy()
            batches.check_labels(int(labels.min()), int(labels.max()), self._settings.classes)

    def _notes(self) -> list[str]:
        notes = [f"MXNet {self._mx.__version__} (retired), Gluon, hybridised"]
        if not self._on_gpu:
            return [*notes, "compute shares its cores with the loader's threads"]
        return [
            *notes,
            "compute is nominal: the average of warm-up steps on data in the device's memory",
            NOTE,
        ]
