# Everything that `dataprep` needs, for x86-64 and ARM; Batch children and Dask workers alike:
#   docker build -t dataprep .
#   docker run dataprep dataprep shard s3://bucket/job.yaml
#   docker run dataprep dask worker tcp://scheduler:8786 --nthreads 1 --nworkers auto
# The bytes of a job depend on the versions of the codecs: constraints/bare.txt pins them, and a
# worker refuses a job that was planned with others.
FROM python:3.11-slim-bookworm
WORKDIR /opt/dataprep
COPY pyproject.toml README.md LICENSE ./
COPY constraints constraints
COPY configs configs
COPY dataprep dataprep
COPY iobench iobench
RUN pip install --no-cache-dir -c constraints/bare.txt .
RUN useradd --create-home dataprep
USER dataprep
WORKDIR /home/dataprep
# One arena that keeps the memory of pixels, instead of mapping it anew for each image.
ENV OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=268435456
CMD ["dataprep", "--help"]
