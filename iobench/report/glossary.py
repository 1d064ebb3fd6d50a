"""PURE. The glossary: the terms of the report, and the terms of the commands.

The report has its terms at its end. docs/glossary.md has both lists.
"""

from __future__ import annotations

from collections.abc import Mapping

DEFINITIONS: Mapping[str, str] = {
    "loss": (
        "(T2 - T1) / T2. T1 is the time of a step on data in the device's memory. T2 is the time "
        "of a step on data from the farthest location that was measured. The loss is the share of "
        "the step T2 that is due to the input, contention for the CPUs included. For a watched "
        "loop with a replay, T1 is the time of a step on repeated batches."
    ),
    "waiting": (
        "The share of a step in which the device has no batch. It differs from the loss if "
        "loading also slows down the device's own work."
    ),
    "au_ceiling": (
        "1 - loss: the loop's samples/s, divided by the samples/s of the same loop on data in the "
        "device's memory."
    ),
    "au_mlperf": (
        "Accelerator utilisation as MLPerf Storage defines it: compute time / running time, "
        "without the first step. The pass marks of MLPerf Storage apply to its own workloads only "
        "(presets whose name ends in -mlperf). For these workloads the report also lists the other "
        "rules. au_mlperf differs from au_ceiling because a host may wait while its device "
        "computes. With several ranks it is the mean, as in DLIO, the program of MLPerf Storage. "
        "The slowest rank is shown as well."
    ),
    "preparation stall": (
        "(T3 - T1) / T2, where T3 is the time of a step on data from a warm page cache: the share "
        "of a step spent on decoding, augmenting, collating and copying. The definition is from "
        "Mohan et al., VLDB 2021."
    ),
    "fetch stall": "(T2 - T3) / T2: the share of a step spent on reads from the disk or the store.",
    "ladder": (
        "The same loop is run several times. The first run uses data in the device's memory. Each "
        "further run, called a rung, replaces one simulated part of the input by the real part. "
        "The difference between two rungs is the cost of that part, and the costs add up to the "
        "loss. The bar shows medians of rungs. The verdict and the findings show medians of "
        "shares, which can differ by one or two percent."
    ),
    "start of an epoch": (
        "The time from the request of an epoch to its first batch. If whole epochs were measured, "
        "the rate includes the starts, and the ladder has a rung for them. That rung is the time "
        "per sample that the loop with samples from memory spent in starts. Loops that read from "
        "farther away may spend more time in starts; the additional time is part of their rungs. A "
        "rate in a steady state includes no start."
    ),
    "balance": (
        "Fetched samples / consumed samples within the counted time. Samples of partial batches "
        "are included. In a steady state the balance is 1."
    ),
    "replay": (
        "A watched loop gets some of its batches again for a number of steps, so that it does not "
        "wait for the loader. The second half of these steps gives the ceiling: the loop's rate "
        "without its loader. If the loop copies batches to the device, it also copies them in "
        "these steps."
    ),
    "cold, warm": (
        "Cold: before the trial at most 1 % of the files' pages were in the page cache, and at "
        "least 95 % of the bytes came from storage. Warm: any other trial that read through the "
        "page cache. Direct: the trial read with O_DIRECT, which bypasses the page cache. On NFS, "
        "Lustre and FUSE, cold is true for this host only; the server's cache may still be warm."
    ),
    "5 times the memory": (
        "If the data is smaller than 5 times the memory, later epochs may be read from the page "
        "cache instead of the disk."
    ),
    "confidence": (
        "High: at least 6 repeats, and an interval whose half-width is below 5 % of the median. "
        "Medium: a half-width below 15 %. Low: all other cases, and also a smoke run of up to 3 "
        "repeats, scattered repeats, figures that are no evidence, and trials whose cold state was "
        "not verified. Storage measured with an emulated device, and a store on the same machine, "
        "never have high confidence."
    ),
    "emulated device": (
        "A simulation of an accelerator: it takes batches at a fixed rate and sleeps for each step."
    ),
    "hosts together": (
        "Several hosts run each trial at the same time. The sum adds the rates of all hosts; each "
        "rate is over the host's own measurement. All other figures and tables are from host 0, "
        "while all hosts were measuring. Evenness is the rate of the slowest host / the rate of "
        "the median host."
    ),
    "spread of starts": (
        "The largest possible time between the first and the last start of a trial on several "
        "hosts. Each host notes by its own clock when it last looked for the signal to begin "
        "without seeing it, and when it first saw it. Clocks of different hosts are never compared."
    ),
    "measured at the same time": (
        "For a trial on several hosts: the time from the last start to the first end, divided by "
        "the time from the first start to the last end. If it is below 1, some hosts measured for "
        "a while without the others, and the sum is more than all hosts get at the same time."
    ),
    "interval": (
        "The exact order-statistic interval of a median. With 6 or more repeats it covers the true "
        "median with a probability of at least 95 %."
    ),
    "predicted": (
        "The minimum of the rates of device, loader and storage, which were measured separately. "
        "Rates with more workers than were measured are predicted from a curve through at least "
        "three numbers of workers, up to twice the largest of them."
    ),
    "scattered": (
        "The repeats differ by more than a factor of 1.5, so only their range is shown. If they "
        "differ by more than a factor of 2, no finding and no prediction uses the figure."
    ),
}
"""The terms of the report with their definitions."""

COMMAND_TERMS: Mapping[str, str] = {
    "augmentation": "Random changes of an image in training, such as crops and mirroring.",
    "batch": "The samples that a training loop takes in one step.",
    "bottleneck": "The part of a training loop that limits its rate.",
    "bounding box": "A rectangle around an object in an image, given by its pixels.",
    "checksum": "A number computed from the bytes of a file. It shows whether they have changed.",
    "class": "A category of images, such as a breed of dog. Each class has a label.",
    "cluster": "Several machines that share a job through a Dask scheduler.",
    "config": "A YAML file with the settings of a job or of a run.",
    "Dask": "A library that distributes the work of a job over processes and machines.",
    "decode": "Turn the bytes of an encoded image (JPEG, for instance) into pixels.",
    "device": "The accelerator on which a model is trained, such as a GPU; also a CPU.",
    "endpoint": "The URL of a service that speaks the S3 protocol.",
    "epoch": "A pass of a training loop over all samples of a split.",
    "evidence": "The measured figures that support a finding.",
    "export": "Write the tables of a run as CSV.",
    "feature": "A named value of a record in TFRecord, such as the image or the label.",
    "finding": "A sentence about a run, with its evidence and advice.",
    "format": "The encoding of records in shards: TFRecord, RecordIO or WebDataset.",
    "GPU": "A graphics processor, on which models are trained.",
    "group": "Trials with the same settings except for their input. A training loop is a group.",
    "host": "A machine that takes part in a job or in a run.",
    "imagefolder, ILSVRC": (
        "Two layouts of a data set on disk. An imagefolder has a folder for each class. ILSVRC is "
        "the layout of the ImageNet challenge."
    ),
    "ImageNet": "A data set of 1.28 million photographs in 1,000 classes.",
    "instance": "A virtual machine of a cloud provider.",
    "job": "The conversion of a split to shards, from planning to the manifest.",
    "key": "The name of a setting in a config, or of an object in a store.",
    "Kubernetes": "A system that runs programs in containers on a cluster of hosts.",
    "label": "The number of a class, from 0.",
    "layout": "How the files of a data set are arranged in folders.",
    "link": "A network connection with a known bandwidth, the amount of data per second.",
    "listing": "A text or Parquet file with a row for each image.",
    "loader": "A program that reads samples from storage and makes batches of them.",
    "lock": "An object in an output that keeps a second job from writing there at the same time.",
    "loop": "A training loop: it takes batches from a loader and trains a model, step by step.",
    "manifest": "A JSON file that is written last. Its presence means that a split is complete.",
    "MB, MiB, GiB": "MB is 1,000,000 bytes. MiB is 1,048,576 bytes. GiB is 1,024 MiB.",
    "model": "The neural network that is trained.",
    "NVMe": "A fast local disk.",
    "output": "The folder or the prefix in a store to which shards, receipts and manifest go.",
    "Parquet": "A file format for tables.",
    "part": "The share of a job that one host converts.",
    "Perfetto": "A program in the browser that shows traces.",
    "prediction": "A rate that was calculated from separate measurements.",
    "probe": "A measurement of storage alone, without decoding and training.",
    "process": "A program that runs. Several processes use several CPUs.",
    "queue": "The waiting list of jobs on AWS Batch.",
    "rank": "A process of a training on several devices. Each device has its own.",
    "rate": "Samples or bytes per second.",
    "reading": "A value that was read from the machine during a trial, such as the CPU usage.",
    "receipt": "A JSON file which says that a shard is complete, with its checksum.",
    "record": "A sample that is encoded in a format.",
    "regression": "A change for the worse between two runs.",
    "rendezvous": "The folder or the prefix in a store through which hosts start together.",
    "round": "A pass in which every trial, or every delay of the self-test, is measured once.",
    "run": "All trials of a config, with their result and their report.",
    "rung": "One of the loops of the ladder. Each rung adds one real part of the input.",
    "sample": "An image with its label.",
    "schema": "A description of the keys of a config, with which editors check it.",
    "seed": "A number that determines all random choices.",
    "setting": "The value of a key.",
    "shard": "A file of records.",
    "source": (
        "Where samples come from: folders, tar files, a listing, Parquet files, records or a "
        "Python class."
    ),
    "split": "A part of a data set: train, validation or test.",
    "stage": "Copy the shards that a host needs to its local disk.",
    "step": "The training on one batch.",
    "storage": "A disk, a file system of a network, or an object store.",
    "store": "A place for objects, such as a bucket on S3 or a local folder.",
    "tar": "An archive that holds many files in one.",
    "TFDS": "TensorFlow Datasets, a collection of prepared data sets.",
    "thread": "A part of a process that works at the same time as its other parts.",
    "torchrun, Slurm": "Programs that start a process on each of several hosts.",
    "trace": "A timeline of the events of a run.",
    "traceback": "The lines of code that led to an error.",
    "trial": "One measurement of iobench.",
    "validation": "The samples on which a model is tested and not trained.",
    "verdict": "The sentence that says what limits a training loop.",
    "WebDataset, TFRecord, RecordIO": (
        "Formats of records. WebDataset uses tar files, TFRecord is from TensorFlow, RecordIO is "
        "from MXNet."
    ),
    "worker": "A process that converts shards in a job, or makes batches in a loader.",
}
"""The terms that the help texts of the commands use."""
