"""PURE. Who says what the rules say: one name for each, with its address."""

from __future__ import annotations

CLOUD_GUIDE = (
    'AWS, "Optimizing I/O for GPU performance tuning of deep learning training in Amazon '
    'SageMaker" (aws.amazon.com/blogs/machine-learning)'
)
PROFILER = (
    "TensorFlow Profiler's input-pipeline analyzer: below 5 % not input-bound, to 20 % moderately, "
    "above highly (tensorflow.org/guide/profiler)"
)
STALLS = (
    'Mohan et al., "Analyzing and mitigating data stalls in DNN training", VLDB 2021: differences '
    "of wall times of the same loop"
)
S3_GUIDE = (
    'AWS, "Best practices design patterns: optimizing Amazon S3 performance" '
    "(docs.aws.amazon.com/AmazonS3)"
)
TORCH_DATA = "PyTorch, torch.utils.data (docs.pytorch.org/docs/stable/data.html)"
TORCH_TUNING = "PyTorch, Performance Tuning Guide (docs.pytorch.org/tutorials)"
NVIDIA = "NVIDIA, Deep Learning Performance: batch size (docs.nvidia.com/deeplearning/performance)"
EFS_GUIDE = "AWS, Amazon EFS performance tips (docs.aws.amazon.com/efs/latest/ug)"
OURS = "this project's rules of measuring (docs/results.md)"
