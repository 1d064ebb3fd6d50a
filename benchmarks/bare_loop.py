#!/usr/bin/env python3
"""Do the work of ``dataprep shard`` in a bare loop without its guarantees, as its speed limit.

Usage: bare_loop.py PHOTOS --workers 2 [--size 256] [--shard-images 750] [--output DIR]

Each worker process reads a shard's files in shuffled order, hashes them, decodes with
libjpeg-turbo, resizes with the antialiased Catmull-Rom filter, encodes at quality 95 (4:2:0,
accurate DCT), frames each image as TFRecord (with checksums) and as RecordIO, writes both files,
hashes them and calls fsync. There is no plan, no receipt, no resume and no error handling.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import shutil
import struct
import tempfile
import time
from pathlib import Path

import crc32c
import cv2
import cykooz_resizer
import numpy as np
import simplejpeg
from cykooz_resizer.rust_lib import PilImageWrapper, RustResizer
from PIL import Image

cv2.setNumThreads(1)
FILTER = cykooz_resizer.ResizeOptions(
    resize_alg=cykooz_resizer.ResizeAlg.convolution(cykooz_resizer.FilterType["catmull_rom"]),
    use_alpha=False,
).rust_options
RESIZER = RustResizer()
JPEG = [cv2.IMWRITE_JPEG_QUALITY, 95]
JPEG_420 = [*JPEG, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420]


def view(pixels):
    """Return an image of Pillow around pixels of four bytes, without a copy."""
    size = pixels.shape[1], pixels.shape[0]
    return PilImageWrapper(Image.frombuffer("CMYK", size, pixels, "raw", "CMYK", 0, 1))


def convert(data, size):
    """Resize a JPEG to a short side of ``size`` pixels. A smaller JPEG is only decoded."""
    height, width, colours, _ = simplejpeg.decode_jpeg_header(data)
    scale = size / min(height, width)
    if scale >= 1:
        simplejpeg.decode_jpeg(data, "GRAY")
        return data
    target_height, target_width = round(height * scale), round(width * scale)
    if colours == "Gray":
        pixels = simplejpeg.decode_jpeg(data, "GRAY")
        grey = cv2.resize(pixels, (target_width, target_height), interpolation=cv2.INTER_AREA)
        return cv2.imencode(".jpg", grey, JPEG)[1].tobytes()
    halves = min(height, width) >= 2 * size
    pixels = simplejpeg.decode_jpeg(
        data,
        "BGRX",
        min_height=target_height if halves else 0,
        min_width=target_width if halves else 0,
    )
    resized = np.empty((target_height, target_width, 4), np.uint8)
    RESIZER.resize_pil(view(pixels), view(resized), FILTER)
    bgr = cv2.cvtColor(resized, cv2.COLOR_BGRA2BGR)
    return cv2.imencode(".jpg", bgr, JPEG_420)[1].tobytes()


def masked(data):
    """Return the masked CRC-32C of TFRecord, as bytes."""
    crc = crc32c.crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


class Sink:
    """The file of a shard. It is written in pieces of 1 MiB, hashed and synced."""

    def __init__(self, path):
        self.file = open(path, "wb")  # noqa: SIM115
        self.hash = hashlib.sha256()
        self.parts = []
        self.bytes = 0

    def write(self, *parts):
        self.parts += parts
        self.bytes += sum(map(len, parts))
        if self.bytes > 1 << 20:
            self.flush()

    def flush(self):
        piece = b"".join(self.parts)
        self.hash.update(piece)
        self.file.write(piece)
        self.parts, self.bytes = [], 0

    def close(self):
        self.flush()
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


def shard(task):
    """Make a shard in both formats. Returns the number of its images."""
    number, paths, size, output = task
    tfrecord, recordio = Sink(f"{output}/tfrecord-{number}"), Sink(f"{output}/recordio-{number}")
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        hashlib.sha256(data).hexdigest()
        jpeg = convert(data, size)
        example = b"".join((bytes(220), jpeg, bytes(120)))  # as long as an Example's other features
        length = struct.pack("<Q", len(example))
        tfrecord.write(length, masked(length), example, masked(example))
        recordio.write(
            struct.pack("<II", 0xCED7230A, len(jpeg) + 24), bytes(24), jpeg, bytes(-len(jpeg) % 4)
        )
    tfrecord.close()
    recordio.close()
    return len(paths)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("photos", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--shard-images", type=int, default=750)
    parser.add_argument("--output")
    options = parser.parse_args()
    output = options.output or tempfile.mkdtemp(prefix="bare-loop-")
    os.makedirs(output, exist_ok=True)
    paths = sorted(str(path) for path in options.photos.rglob("*.JPEG"))
    paths.sort(key=lambda path: hashlib.blake2b(path.encode()).digest())
    step = options.shard_images
    tasks = [
        (at // step, paths[at : at + step], options.size, output)
        for at in range(0, len(paths), step)
    ]
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        start = time.perf_counter()
        images = sum(pool.imap_unordered(shard, tasks))
        seconds = time.perf_counter() - start
    if not options.output:
        shutil.rmtree(output)
    figures = {
        "images": images,
        "seconds": round(seconds, 2),
        "images_per_s": round(images / seconds, 1),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
