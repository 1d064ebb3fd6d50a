"""``tensorflow``: a training loop in TensorFlow and Keras. A step is one ``tf.function``."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from dataprep.reading.normalisation import IMAGENET_MEAN, IMAGENET_STD
from iobench.clock import Clock
from iobench.consumers import requirements
from iobench.consumers.protocol import ConsumerSettings, Model
from iobench.consumers.training import (
    NOMINAL,
    QUEUED,
    Convolution,
    TrainingConsumer,
    residual_blocks,
    shortcut,
)
from iobench.loaders.frameworks import need_framework
from iobench.loaders.protocol import Batch, Framework


class TensorFlowConsumer(TrainingConsumer):
    """Training in TensorFlow. The step is traced once."""

    framework: Framework = "tensorflow"
    arrays = "TensorFlow tensors"
    channels_last = True

    def __init__(self, settings: ConsumerSettings, clock: Clock) -> None:
        tf = self._tf = need_framework("tensorflow")
        gpus = tf.config.list_physical_devices("GPU")
        build = f"TensorFlow {tf.__version__}"
        on_gpu = requirements.takes_gpu(settings.device, bool(gpus), build)
        super().__init__(settings, clock, on_gpu=on_gpu)
        self._array = tf.Tensor
        self._device_name = "/GPU:0" if on_gpu else "/CPU:0"
        if on_gpu:
            details = tf.config.experimental.get_device_details(gpus[0])
            capability = tuple(details.get("compute_capability", (7, 0)))
            self.precision = requirements.gpu_precision(
                settings.precision, capability, prefers_bfloat16=False
            )
            self.device = str(details.get("device_name", "GPU"))
            tf32 = "on" if tf.config.experimental.tensor_float_32_execution_enabled() else "off"
            notes = [NOMINAL, QUEUED, f"TF32: {tf32}"]
        else:
            self.precision = requirements.cpu_precision(settings.precision)
            count = requirements.threads("TF_NUM_INTRAOP_THREADS")
            self.device = requirements.describe_cpu(count)
            notes = ["compute shares its cores with the loader's threads"]
        self.notes = [f"{build}, tf.function without XLA", *notes]
        tf.random.set_seed(settings.seed)
        policy = self.precision if self.precision == "float32" else f"mixed_{self.precision}"
        size = settings.image_size
        with tf.device(self._device_name):
            self._net = network(tf.keras, settings.model, settings.classes, size, policy)
            optimiser = tf.keras.optimizers.SGD(0.01, momentum=0.9, weight_decay=1e-4)
            if self.precision == "float16":
                optimiser = tf.keras.optimizers.LossScaleOptimizer(optimiser)
            optimiser.build(self._net.trainable_variables)
        self._optimiser = optimiser
        self._loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        images = tf.TensorSpec((None, size, size, 3), tf.float32)
        labels = tf.TensorSpec((None,), tf.int64)
        self._traced_step = tf.function(self._step, input_signature=(images, labels))

    def _step(self, images: Any, labels: Any) -> Any:
        with self._tf.GradientTape() as tape:
            loss = self._loss(labels, self._net(images, training=True))
            scaled = self._optimiser.scale_loss(loss)
        gradients = tape.gradient(scaled, self._net.trainable_variables)
        self._optimiser.apply_gradients(zip(gradients, self._net.trainable_variables, strict=True))
        return loss

    def _on_device(self, values: NDArray[Any]) -> Any:
        with self._tf.device(self._device_name):
            return self._tf.constant(values)

    def _to_device(self, batch: Batch) -> tuple[Any, Any]:
        with self._tf.device(self._device_name):
            labels = self._tf.cast(batch.labels, self._tf.int64)
            return self._tf.identity(batch.images), labels

    def _train(self, images: Any, labels: Any) -> Any:
        with self._tf.device(self._device_name):
            if images.dtype == self._tf.uint8:
                pixels = self._tf.cast(images, self._tf.float32) / 255.0
                images = (pixels - IMAGENET_MEAN) / IMAGENET_STD
            return self._traced_step(images, labels)

    def _wait(self) -> None:
        """Wait for the last loss and for the weights of its step."""
        if self.last_loss is not None:
            self.last_loss.numpy()
            self._net.trainable_variables[0].numpy()

    def _wait_for(self, loss: Any, mark: Any) -> None:
        loss.numpy()

    def _inspect(self, batch: Batch) -> tuple[str, Any]:
        on_cpu = "CPU" in batch.labels.device
        return batch.images.dtype.name, batch.labels.numpy() if on_cpu else None


def network(keras: Any, model: Model, classes: int, image_size: int, policy: str) -> Any:
    """Return the network of the consumer ``torch`` in Keras.

    It maps images (N, S, S, 3) float32 to logits (N, ``classes``) float32. Keras' own ResNet-50 is
    not used: it has the stride of a block in the first 1x1 convolution (v1), and biases in its
    convolutions.

    Args:
        keras: the module.
        model: the name of the network.
        classes: the number of classes.
        image_size: the side of the images, in pixels.
        policy: ``float32``, or a Keras policy of mixed precision. It stays set in the process.
    """
    keras.config.set_dtype_policy(policy)
    images = keras.Input((image_size, image_size, 3))
    layers = keras.layers
    x = _lenet(layers, images) if model == "lenet" else _resnet(layers, images, model)
    # Logits are float32 with any policy, because cross entropy needs the range.
    return keras.Model(images, layers.Dense(classes, dtype="float32")(x))


def _lenet(layers: Any, x: Any) -> Any:
    x = layers.Conv2D(6, 5, padding="same", activation="relu")(x)
    x = layers.MaxPool2D(2)(x)
    x = layers.Conv2D(16, 5, activation="relu")(x)
    # Resizing to (N, 5, 5, C) replaces torch's adaptive pooling, which Keras does not have.
    x = layers.Flatten()(layers.Resizing(5, 5)(x))
    return layers.Dense(84, activation="relu")(layers.Dense(120, activation="relu")(x))


def _resnet(layers: Any, x: Any, model: Model) -> Any:
    x = layers.ReLU()(_conv_norm(layers, x, Convolution(3, 64, 7, 2)))
    x = layers.MaxPool2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for block in residual_blocks(model):
        body = x
        for convolution in block[:-1]:
            body = layers.ReLU()(_conv_norm(layers, body, convolution))
        body = _conv_norm(layers, body, block[-1], gamma="zeros")
        projection = shortcut(block)
        if projection is not None:
            x = _conv_norm(layers, x, projection)
        x = layers.ReLU()(layers.Add()([body, x]))
    return layers.GlobalAveragePooling2D()(x)


def _conv_norm(layers: Any, x: Any, convolution: Convolution, gamma: str = "ones") -> Any:
    """Apply a convolution and a batch norm. ``gamma`` is the initial scale of the batch norm."""
    _, filters, kernel, stride = convolution
    if kernel > 1:
        # Padding is explicit, because "same" pads unevenly at stride 2.
        x = layers.ZeroPadding2D(kernel // 2)(x)
    conv = layers.Conv2D(filters, kernel, stride, use_bias=False, kernel_initializer="he_normal")
    norm = layers.BatchNormalization(momentum=0.9, epsilon=1e-5, gamma_initializer=gamma)
    return norm(conv(x))
