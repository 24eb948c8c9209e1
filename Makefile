# Two commands for everybody: `make demo` and `make test`. Both do their own set-up.
.PHONY: help setup demo demo-node kind test test-frameworks verify bench generate image gpu-bundle gpu-e2e
.DEFAULT_GOAL := help
PY := .venv/bin/python

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 25

setup: ## virtual environment, control plane, .venv/bin/kubectl-gpumem
	@bash scripts/setup.sh

demo: setup ## the product on a real control plane, in a few minutes (KEEP=1 leaves it running)
	@$(PY) -m devcluster.demo $(if $(KEEP),--keep)

demo-node: setup ## the demo on a real node: kubelet, containerd, running pods (needs root)
	@$(PY) -m devcluster.node
	@$(PY) -m devcluster.demo --on node $(if $(KEEP),--keep)

kind: setup ## the demo on kind, with the images of this checkout (needs kind and Docker or Podman)
	@$(PY) -m devcluster.demo --on kind $(if $(KEEP),--keep)

test: setup ## all tests; as root also those on a real node, whose programs are built first
	@$(PY) -m devcluster.node
	@$(PY) tests/frameworks/releases.py newest
	@$(PY) -m pytest $(ARGS)

test-frameworks: setup ## the shim with every pinned release of each framework (14 GB on first use)
	@$(PY) tests/frameworks/releases.py all
	@FRAMEWORKS=all $(PY) -m pytest tests/frameworks $(ARGS)

verify: setup ## generated files, style, types, imports, chart and tests; lists every failure
	@bash scripts/verify.sh

bench: setup ## the figures of the README, as ratios measured in one run (about ten minutes)
	@$(PY) -m bench $(ARGS)

image: ## both images, with docker, podman or buildah (BASE names another base image)
	@bash scripts/image.sh

gpu-bundle: setup ## all that a node needs on a machine without a network, in parts of PART_MB
	@$(PY) -m devcluster.bundle $(or $(FOLDER),dist/gpumem-bundle) --part-mb $(or $(PART_MB),50)

gpu-e2e: setup ## everything on a node with this machine's NVIDIA GPU, as a table (needs root)
	@$(PY) -m devcluster.node
	@PYTHONPATH=operator:sidecar:tests:. $(PY) -m gpu_e2e $(ARGS)

generate: setup ## CRDs, chart parts and reference pages from the models
	@$(PY) -m gpumem_operator.cli.generate
