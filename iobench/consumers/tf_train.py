"""``tensorflow``: a training loop in TensorFlow and Keras, one ``tf.function`` a step."""

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


class TensorFlowConsumer:
    """SGD with momentum on cross entropy; see ``Consumer``.

    uint8 images are normalised on the device. On a CPU a step is done when it comes back, and
    ``compute_s`` is its wall time; on a GPU it is what a step took on average over several that
    ``warm_up`` ran without a pause on data that lay on the device.
    """

    framework: Framework = "tensorflow"
    emulated = False

    def __init__(self, settings: ConsumerSettings, clock: Clock) -> None:
        tf = self._tf = requirements.framework("tensorflow")
        self._settings, self._clock = settings, clock
        gpus = tf.config.list_physical_devices("GPU")
        build = f"TensorFlow {tf.__version__}"
        self._on_gpu = requirements.takes_gpu(settings.device, bool(gpus), build)
        details = tf.config.experimental.get_device_details(gpus[0]) if self._on_gpu else {}
        self._place = "/GPU:0" if self._on_gpu else "/CPU:0"
        if self._on_gpu:
            capability = tuple(details.get("compute_capability", (7, 0)))
            self.precision = requirements.gpu_precision(
                settings.precision, capability, bfloat16=False
            )
            self.device = str(details.get("device_name", "GPU"))
        else:
            self.precision = requirements.cpu_precision(settings.precision)
            self.device = processor.describe(processor.threads("TF_NUM_INTRAOP_THREADS"))
        self.notes: Sequence[str] = tuple(self._notes())
        self.last_loss: Any = None
        self._nominal_s = 0.0
        self._compute_s: list[float] = []
        self._queue = Queue(lambda loss: loss.numpy())
        with tf.device(self._place):
            self._build()

    def synthetic(self) -> Batch:
        """Normal noise (N, S, S, 3) float32 and int64 labels, drawn on the device."""
        tf, settings = self._tf, self._settings
        size, samples = settings.image_size, settings.batch_size
        seed = (settings.seed, 0)
        with tf.device(self._place):
            images = tf.random.stateless_normal((samples, size, size, 3), seed)
            labels = tf.random.stateless_uniform(
                (samples,), seed, 0, settings.classes, dtype=tf.int64
            )
        return Batch(images, labels, samples)

    def warm_up(self) -> None:
        """Trace and tune on the synthetic batch; on a GPU, then see what a step takes."""
        batch = self.synthetic()
        step = partial(self.step, batch)
        until_steady(step, self.finish, self._clock, at_most=10 if self._on_gpu else 3)
        with self._tf.device(self._place):
            self._normalise(self._tf.zeros_like(batch.images, self._tf.uint8))
        if self._on_gpu:
            self._nominal_s = per_step_s(step, self.finish, self._clock)
        self._compute_s.clear()

    def step(self, batch: Batch) -> None:
        """Copy, normalise, forward, backward, optimiser step; at most two queue on a GPU."""
        self._check(batch)
        began_s = self._clock.now_s()
        with self._tf.device(self._place):
            images = self._tf.identity(batch.images)
            labels = self._tf.cast(batch.labels, self._tf.int64)
            if images.dtype == self._tf.uint8:
                images = self._normalise(images)
            self.last_loss = self._train(images, labels)
        if self._on_gpu:
            self._compute_s.append(self._nominal_s)
            self._queue.add(self.last_loss)
        else:
            self._compute_s.append(self._clock.now_s() - began_s)

    def finish(self) -> None:
        """Wait for the last step: its loss, and the weights that it changed."""
        self._queue.clear()
        if self._compute_s:
            self.last_loss.numpy()
            self._net.trainable_variables[0].numpy()

    def compute_s(self) -> Sequence[float]:
        """One entry a step."""
        return self._compute_s

    def _build(self) -> None:
        tf, settings = self._tf, self._settings
        tf.random.set_seed(settings.seed)
        models = importlib.import_module("iobench.consumers.tf_models")
        policy = self.precision if self.precision == "float32" else f"mixed_{self.precision}"
        size = settings.image_size
        self._net = models.build(settings.model, settings.classes, size, policy)
        optimiser = tf.keras.optimizers.SGD(0.01, momentum=0.9, weight_decay=1e-4)
        if self.precision == "float16":
            optimiser = tf.keras.optimizers.LossScaleOptimizer(optimiser)
        optimiser.build(self._net.trainable_variables)
        self._optimiser = optimiser
        self._loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        images = tf.TensorSpec((None, size, size, 3), tf.float32)
        labels = tf.TensorSpec((None,), tf.int64)
        self._train = tf.function(self._traced, input_signature=(images, labels))
        pixels = tf.TensorSpec(images.shape, tf.uint8)
        self._normalise = tf.function(self._normalised, input_signature=(pixels,))

    def _traced(self, images: Any, labels: Any) -> Any:
        with self._tf.GradientTape() as tape:
            loss = self._loss(labels, self._net(images, training=True))
            scaled = self._optimiser.scale_loss(loss)
        gradients = tape.gradient(scaled, self._net.trainable_variables)
        self._optimiser.apply_gradients(zip(gradients, self._net.trainable_variables, strict=True))
        return loss

    def _normalised(self, pixels: Any) -> Any:
        images = self._tf.cast(pixels, self._tf.float32) / 255.0
        return (images - batches.MEAN) / batches.STD

    def _check(self, batch: Batch) -> None:
        batches.check_arrays(batch.images, batch.labels, self._tf.Tensor, "TensorFlow tensors")
        dtype, size = batch.images.dtype.name, self._settings.image_size
        batches.check_images(batch.images.shape.as_list(), dtype, size, channels_last=True)
        # Reading labels back from a GPU would make every step wait for it.
        if "CPU" in batch.labels.device and batch.samples:
            labels = batch.labels.numpy()
            batches.check_labels(int(labels.min()), int(labels.max()), self._settings.classes)

    def _notes(self) -> list[str]:
        notes = [f"TensorFlow {self._tf.__version__}, tf.function without XLA"]
        if not self._on_gpu:
            return [*notes, "compute shares its cores with the loader's threads"]
        tf32 = self._tf.config.experimental.tensor_float_32_execution_enabled()
        return [
            *notes,
            "compute is nominal: the average of warm-up steps on data in the device's memory",
            NOTE,
            f"TF32: {'on' if tf32 else 'off'}",
        ]
