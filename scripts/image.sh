#!/usr/bin/env bash
# Builds both images with whichever of docker, podman and buildah is there.
#
#   BASE       image to build on: any with Python 3.11 or newer (default: the one of the Dockerfile)
#   REGISTRY   where the names begin (default: ghcr.io/gpumemory, as in the chart's values)
#   BUILDER    docker, podman or buildah (default: the first that is there)
#   ARCHIVES   folder for archives of the images (default: none are written)
#   DEMO       1: also the image of the demo's workloads, which holds simulated GPU memory
set -euo pipefail
cd "$(dirname "$0")/.."

REGISTRY=${REGISTRY:-ghcr.io/gpumemory}
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)

fail() {
  printf 'image: %s\n' "$*" >&2
  exit 1
}

find_builder() {
  local candidate
  for candidate in docker podman buildah; do
    # A docker command without its daemon builds nothing.
    if command -v "$candidate" >/dev/null && "$candidate" info >/dev/null 2>&1; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  fail "no builder of images works here. Install one, e.g. apt-get install buildah, or start docker"
}

# pip in the build asks the package index that this machine asks, and trusts whom it trusts.
machine_settings() {
  local path
  for path in /etc/pip.conf /etc/ssl/certs; do
    [[ -e $path ]] && printf -- '--volume=%s:%s:ro\n' "$path" "$path"
  done
  return 0
}

# build NAME FOLDER OPTION...
build() {
  local name=$1 folder=$2
  local -a options=(--tag "$name" "${@:3}")
  local -a settings
  mapfile -t settings < <(machine_settings)
  case $BUILDER in
    docker) docker build "${options[@]}" "$folder" ;;
    podman) podman build --network host "${settings[@]}" "${options[@]}" "$folder" ;;
    # chroot: the steps need no container runtime, and none of the rights that one needs.
    buildah) buildah build --layers --isolation chroot --network host "${settings[@]}" "${options[@]}" "$folder" ;;
    *) fail "BUILDER is $BUILDER, but has to be docker, podman or buildah" ;;
  esac
}

# The name travels in the archive, so that `ctr images import` knows it.
archive() {
  local name=$1 file=$2
  rm -f "$file"
  case $BUILDER in
    docker) docker save --output "$file" "$name" ;;
    podman) podman save --format oci-archive --output "$file" "$name" ;;
    buildah) buildah push --quiet "$name" "oci-archive:$file:$name" ;;
  esac
}

finish() {
  local name=$1 file=$2
  if [[ -n ${ARCHIVES:-} ]]; then
    archive "$name" "$ARCHIVES/$file.tar"
  fi
  printf 'image: %s\n' "$name" >&2
}

BUILDER=${BUILDER:-$(find_builder)}
for target in operator sidecar; do
  image=$([[ $target == operator ]] && echo gpu-memory-operator || echo gpu-memory-sidecar)
  name=$REGISTRY/$image:$VERSION
  build "$name" . --target "$target" ${BASE:+--build-arg "BASE=$BASE"}
  finish "$name" "$target"
done
if [[ ${DEMO:-} == 1 ]]; then
  build registry.example/workload:1 examples/demo/image --build-arg "BASE=$name"
  finish registry.example/workload:1 workload
fi
