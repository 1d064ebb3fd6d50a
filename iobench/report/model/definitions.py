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
        "Total compute time ÷ total running time, the first step left out. The pass mark for "
        "ResNet-50 is 90 %. Never to be mixed with au_ceiling: this one counts only what was "
        "waited for, that one everything which slows the loop.",
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
        "interval",
        "Median over repeats, each in a fresh process, with the exact order-statistic interval: "
        "6 repeats are the fewest that cover 95 % (minimum to maximum: 96.9 %). A quantile q "
        "is given only from 10 ÷ (1 − q) samples on.",
        "Conover, “Practical Nonparametric Statistics”, 3rd ed., section 3.2",
    ),
    Definition(
        "cold (proved), warm, direct, server cache unknown",
        "Cold: at most 1 % of the pages resident before, and at least 0.95 physical ÷ logical "
        "bytes after; where those are not counted, residency alone shows it for random reads, "
        "nothing for reads of whole files. What could not be shown cold is labelled "
        "warm, whatever was asked. Direct: O_DIRECT, past the page cache. A remote store’s own "
        "cache cannot be seen.",
    ),
    Definition(
        "cache-resident",
        "The data would fit in memory, so that later epochs come from the page cache: an epoch "
        "is honest from 5 times the memory on.",
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
    Definition("units", "MB is 10⁶ bytes, MiB 2²⁰. A sample is one image with its label."),
)


def section() -> Section:
    """The glossary."""
    return Section("definitions", "What the figures mean", (Definitions(_ENTRIES),))
