"""PURE. What every figure means, and who says so."""

from __future__ import annotations

from iobench.report.model.shapes import Definition, Definitions, Section

_MOHAN = "after Mohan et al., “Analyzing and mitigating data stalls in DNN training”, VLDB 2021"
_ENTRIES = (
    Definition(
        "au_ceiling",
        "Achieved samples/s ÷ what the device consumes: the same model on the same device, fed "
        "from its own memory.",
    ),
    Definition(
        "au_mlperf",
        "Total compute time ÷ total running time, the first step left out. It is that benchmark’s "
        "formula on your own loop, and no result of it; its mark for ResNet-50 was 90 % in 2.0, "
        "and 3.0 keeps that model for planning only. Never to be mixed with au_ceiling: this one "
        "counts only what was waited for, that one everything which slows the loop.",
        "MLPerf Storage",
    ),
    Definition(
        "T1, T3, T2",
        "Wall times of the same loop for the same number of samples: on synthetic data on the "
        "device already, from a warm page cache, and cold. The device consumes G = N ÷ T1; "
        "N ÷ T3 and N ÷ T2 are rates achieved, never supplies, since stages overlap.",
    ),
    Definition(
        "preparation stall, fetch stall",
        "(T3 − T1) ÷ T2 and (T2 − T3) ÷ T2. The formulas assume no overlap; a negative "
        "difference is shown as it is.",
        _MOHAN,
    ),
    Definition(
        "ladder, rung",
        "The same loop with one more real part of its input each time: on the device; + copied "
        "from host memory; + collated and handed over between processes; + augmented; + decoded; "
        "+ read from the page cache; cold; or from the store instead of the local read. What a "
        "rung adds is the difference to the one above it, taken within repeats: what becomes "
        "visible in this order, since parts overlap. Three rungs where the pipeline is a "
        "framework’s own.",
        _MOHAN,
    ),
    Definition(
        "supply",
        "What a loader, a reader or a disk layout gives with nothing behind it but a consumer "
        "that throws batches away.",
    ),
    Definition(
        "time to first batch, step time, wait share",
        "From the start of the loop to its first batch; from the end of one step to the end of "
        "the next; the share of running time in which the loop waited for data.",
    ),
    Definition(
        "listing, worker start, first fetch, first decode, rest",
        "The time to the first batch, in spans that follow each other on the way to it and add up "
        "to it: until it is known what there is to read; until whoever makes that batch begins to "
        "read; its samples read; decoded and augmented; then put together and handed over. "
        "Reading and decoding are those of the first batch alone, in the worker that makes it, "
        "sample by sample; what a loader cannot tell apart is in the rest. A trial looks at its "
        "data before its clock runs: names and manifests of local ones come from the kernel’s "
        "memory then, also where it is cold.",
    ),
    Definition(
        "ranks",
        "Processes that train one network on a device each, and average gradients in every step. "
        "Of the whole loop: samples of all ranks ÷ the time from the first to begin to the last to "
        "end; a step waits and computes as the rank that waits longest, which comes last and waits "
        "for no other; where ranks wait alike it computes as they do on average. In a rank’s own "
        "row computing includes the wait for the others’ gradients.",
        "Li et al., “PyTorch Distributed: Experiences on Accelerating Data Parallel Training”, "
        "VLDB 2020",
    ),
    Definition(
        "interval",
        "Median over repeats, each in a fresh process, with the exact order-statistic interval: "
        "6 repeats are the fewest that cover 95 % (minimum to maximum: 96.9 %). A quantile q "
        "is given only from 10 ÷ (1 − q) samples on.",
        "Conover, “Practical Nonparametric Statistics”, 3rd ed., section 3.2",
    ),
    Definition(
        "cold, warm, direct, server cache unknown",
        "Cold: at most 1 % of the pages resident before, and at least 0.95 physical ÷ logical "
        "bytes after; where those are not counted, residency alone shows it for random reads, "
        "nothing for reads of whole files. What could not be shown cold is labelled "
        "warm, whatever was asked. The share beside cold is that of the bytes read that came from "
        "storage, the least of all repeats. First epoch cold: later ones found what the page "
        "cache had kept. Direct: O_DIRECT, past the page cache. A remote store’s own cache cannot "
        "be seen.",
    ),
    Definition(
        "amplification",
        "Bytes that storage gave ÷ bytes of the samples asked for, where single samples are read: "
        "read-ahead and whole pages move more. It is no proof of cold; there the residency before "
        "is.",
    ),
    Definition(
        "cache-resident",
        "The data are smaller than 5 times the memory, so that later epochs may come from the page "
        "cache: from that size on an epoch is honest.",
    ),
    Definition(
        "access modes: file, pipe, lazy, mount",
        "How a loader reaches data on a store: all of it downloaded first, whole objects in "
        "sequence, a range request a sample, or files at a path. Memory needed: the growth of the "
        "trial’s processes beyond what they held before the first epoch, in anonymous pages and "
        "shared memory.",
        "proportional set size: proc(5), smaps_rollup",
    ),
    Definition(
        "emulated",
        "A device described by its images per second: no arithmetic was done, and no figure "
        "beside this word is of a real device.",
    ),
    Definition(
        "waiting for data, in a watched loop",
        "Time in next() on the host. A GPU may be computing meanwhile what was handed to it "
        "before, so that not all of it is lost; where the device is watched too, its own idle time "
        "while a batch was waited for is measured by CUDA’s events.",
    ),
    Definition(
        "series of the machine",
        "Readings 1 to 10 times a second, by another process than the loop’s, on the same clock "
        "as its steps; rates are of the time since the reading before. Processors, disks, network "
        "and page cache are the whole machine’s. The utilisation of a GPU is the share of time in "
        "which any kernel ran, however small: no figure rests on it.",
        "NVML, proc(5)",
    ),
    Definition(
        "instrumentation",
        "A step of the same loop around nothing, as a share of a step that was measured; and the "
        "processor time of reading the machine, as a share of one core. Each is to be below 1 %.",
    ),
    Definition(
        "memory, CPU s per 1,000 samples, cores busy",
        "Of a trial’s process and its workers, framework and interpreter included. Memory is the "
        "largest proportional set size (PSS) from asking for the first batch on: pages that "
        "several processes share count once, mapped files too. Where the kernel does not tell it, "
        "it is RSS and says so. Processor time, user and system, is that of the steps that count. "
        "In a training loop training itself is part of them; its workers stand apart.",
        "proc(5)",
    ),
    Definition("units", "MB is 10⁶ bytes, MiB 2²⁰. A sample is one image with its label."),
)


def section() -> Section:
    """The glossary."""
    return Section("definitions", "What the figures mean", (Definitions(_ENTRIES),))
