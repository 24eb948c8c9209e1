#!/usr/bin/env bash
# Everything that `make test` and `make demo` need: a virtual environment with the pinned packages,
# and the programs of the control plane. Does only what is not up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
STAMP=.venv/.setup-stamp
PACKAGING='import tomllib
said = tomllib.load(open("pyproject.toml", "rb"))
print(said["build-system"], said["project"], said["tool"]["hatch"])'

say() { printf 'setup: %s\n' "$*" >&2; }

fail() {
  say "$*"
  exit 1
}

check_tools() {
  command -v "$PYTHON" >/dev/null ||
    fail "$PYTHON is missing. Install Python 3.11 or newer, e.g. apt-get install python3 python3-venv"
  "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$PYTHON is $("$PYTHON" -V 2>&1), but 3.11 or newer is needed. Install one and run: PYTHON=python3.11 make setup"
  "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "$PYTHON can not create virtual environments. Install its venv module, e.g. apt-get install python3-venv"
  local tool
  for tool in git make; do
    command -v "$tool" >/dev/null || fail "$tool is missing. Install it, e.g. apt-get install $tool"
  done
}

# Changes when the pins, the packaging, the interpreter or the way to install do, or the repository
# moves: an editable install holds absolute paths. What pyproject.toml says to linters and to pytest
# does not count.
wanted_stamp() {
  {
    "$PYTHON" -V
    pwd
    cat requirements.lock
    declare -f install_packages
    "$PYTHON" -c "$PACKAGING"
  } | sha256sum
}

up_to_date() {
  [[ -x .venv/bin/python && -f $STAMP && $(<"$STAMP") == "$1" ]] && .venv/bin/python -c '' 2>/dev/null
}

install_packages() {
  say "creating .venv"
  "$PYTHON" -m venv --clear .venv
  say "installing the pinned packages (about 1 min when nothing is cached)"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
    --requirement requirements.lock
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --editable .
}

check_tools
stamp=$(wanted_stamp)
if ! up_to_date "$stamp"; then
  install_packages
  printf '%s\n' "$stamp" >"$STAMP"
  say "the packages are installed"
fi
.venv/bin/python -m devcluster build
