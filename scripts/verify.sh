#!/usr/bin/env bash
# Runs every check and lists all that failed, not only the first.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
step() {
  local name=$1
  shift
  printf '\n== %s\n' "$name"
  "$@" || failed+=("$name")
}

step "generated files are up to date" .venv/bin/python -m gpumem_operator.cli.generate --check
step "style" .venv/bin/ruff check .
step "format" .venv/bin/ruff format --check .
step "types" .venv/bin/mypy
step "import directions" .venv/bin/lint-imports
step "what tests on a real node need" .venv/bin/python -m devcluster.node
step "tests" .venv/bin/python -m pytest

if ((${#failed[@]})); then
  printf '\nverify: failed: %s\n' "${failed[*]}"
  exit 1
fi
printf '\nverify: all steps passed\n'
