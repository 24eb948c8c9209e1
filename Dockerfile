# Two images from one file:
#   docker build --target operator -t ghcr.io/gpumemory/gpu-memory-operator:0.1.0 .
#   docker build --target sidecar  -t ghcr.io/gpumemory/gpu-memory-sidecar:0.1.0 .
# Any base with Python 3.11 or newer and its venv module will do.
ARG BASE=python:3.13-slim

FROM ${BASE} AS operator-packages
WORKDIR /build
COPY pyproject.toml requirements.lock ./
COPY scripts/locked.py scripts/
RUN python3 scripts/locked.py operator > operator.lock \
 && python3 -m venv /opt/gpumem \
 && /opt/gpumem/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: \
      -r operator.lock
COPY operator/ /opt/gpumem/src/
RUN /opt/gpumem/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/gpumem

FROM ${BASE} AS sidecar-packages
WORKDIR /build
COPY pyproject.toml requirements.lock ./
COPY scripts/locked.py scripts/
RUN python3 scripts/locked.py sidecar > sidecar.lock \
 && python3 -m venv /opt/gpumem \
 && /opt/gpumem/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: \
      -r sidecar.lock
COPY sidecar/ /opt/gpumem/src/
RUN /opt/gpumem/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/gpumem

# The root file system is read-only in the chart, so nothing is compiled or written later. Official
# images of Python come without compiled modules: a sidecar's start would compile what it imports of
# the standard library each time, and take three times as long. So that is compiled here.
FROM ${BASE} AS operator
COPY --from=operator-packages /opt/gpumem /opt/gpumem
RUN PYTHONPATH=/opt/gpumem/src /opt/gpumem/bin/python \
      -c "import gpumem_operator.webhook.process, gpumem_operator.controllers.process"
ENV PATH=/opt/gpumem/bin:$PATH PYTHONPATH=/opt/gpumem/src \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /
ENTRYPOINT ["python", "-m", "gpumem_operator"]

# Admission names the command itself: this one image is both the init container and the sidecar.
FROM ${BASE} AS sidecar
COPY --from=sidecar-packages /opt/gpumem /opt/gpumem
RUN PYTHONPATH=/opt/gpumem/src /opt/gpumem/bin/python \
      -c "import gpumem_sidecar.__main__, gpumem_sidecar.channel, gpumem_sidecar.grpc_call, gpumem_shim"
ENV PATH=/opt/gpumem/bin:$PATH PYTHONPATH=/opt/gpumem/src \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /
CMD ["python", "-m", "gpumem_sidecar"]
