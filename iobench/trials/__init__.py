"""Trials that run a loop: a loader alone, or a whole training loop.

Settings and plans, before a trial:

- ``loader_grid`` and ``training_settings``: the keys of a config, and the points of a run;
- ``trial_duration``: estimate how long a trial will take.

The process of a trial:

- ``trial_timeout``: run a trial in its own process, and kill it after the time limit;
- ``trial_process``: the process as its parent sees it, and the messages between them;
- ``trial_process_main``: the program that runs in the process.

A trial:

- ``loader_trial`` and ``training_trial``: a loader alone, and a training loop on one device;
- ``multi_device_training`` and ``training_rank``: a training loop on several devices, and the
  process of one of these devices;
- ``loader_opening``: create the loader, and check that it suits the loop;
- ``rate_plan``: the rate rule, the full batches, and the steps of ranks.

The measurement:

- ``loader_measurement``: measure a loop that reads with a loader, and its use of storage;
- ``rate_measurement``: read epochs until the rate is known;
- ``epoch_loop``: the loop over one epoch, with the time of each step;
- ``window``, ``window_rules`` and ``samples_in_flight``: which steps count;
- ``epoch_cache``: the page cache before and after each epoch;
- ``rank_processes``: the processes of ranks.

The results:

- ``loop_timings`` and ``rank_timings``: the timings of one loop, and of loops at the same time;
- ``loop_metrics`` and ``spans``: metrics, series and spans of a trial;
- ``ladder``: the cost of each stage, from the same loop with different inputs.
"""
