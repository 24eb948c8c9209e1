"""Write every file that is made from the models: CRDs, the chart's copies, schema, reference.

    python -m gpumem_operator.cli.generate            writes them
    python -m gpumem_operator.cli.generate --check    fails where a file is not up to date

The models are the only place where the API is described; these files are kept in the repository so
that people can read them and `kubectl apply` needs no Python.
"""

import argparse
import difflib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from gpumem_operator.api.crd import KINDS, custom_resource_definition
from gpumem_operator.api.reference import reference
from gpumem_operator.api.values_schema import values_schema

COMMAND: Final = "make generate"
REPOSITORY: Final = Path(__file__).resolve().parents[3]
CHART: Final = Path("charts/gpu-memory-operator")
BY_HAND: Final = CHART / "values.extra.schema.json"

_HEADER: Final = f"Made by `{COMMAND}` from operator/gpumem_operator/api; do not edit."
_KEEP: Final = {"helm.sh/resource-policy": "keep"}
_SHOWN_LINES: Final = 40


class _WithoutAliases(yaml.SafeDumper):
    """Writes what occurs twice twice: anchors are hard to read, and Helm would resolve them."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def generated_files(repository: Path) -> dict[Path, str]:
    """The text of each generated file, by its path in the repository."""
    files: dict[Path, str] = {}
    for kind in KINDS:
        name = f"{kind.plural}.yaml"
        files[Path("crds") / name] = f"# {_HEADER}\n{_yaml(custom_resource_definition(kind))}"
        kept = _yaml(custom_resource_definition(kind, annotations=_KEEP))
        files[CHART / "templates" / "crds" / name] = _template(kept)
    extra = repository / BY_HAND
    by_hand = json.loads(extra.read_text()) if extra.exists() else None
    schema = {"$comment": _HEADER} | values_schema(by_hand)
    files[CHART / "values.schema.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    files[Path("docs/reference/api.md")] = f"<!-- {_HEADER} -->\n\n{reference()}"
    return files


def _yaml(document: dict[str, Any]) -> str:
    return yaml.dump(
        document, Dumper=_WithoutAliases, sort_keys=False, width=100, allow_unicode=True
    )


def _template(text: str) -> str:
    """The text as a template that Helm copies, where the values want it."""
    # The words of a description must not become instructions of the template.
    text = text.replace("{{", '{{ "{{" }}')
    return f"# {_HEADER}\n{{{{- if .Values.crds.install }}}}\n{text}{{{{- end }}}}\n"


def outdated(repository: Path) -> list[str]:
    """A diff for each generated file that is not what the command would write."""
    diffs = []
    for path, text in generated_files(repository).items():
        there = repository / path
        stored = there.read_text() if there.exists() else ""
        if stored != text:
            lines = difflib.unified_diff(
                stored.splitlines(), text.splitlines(), str(path), f"{path} (generated)", n=1
            )
            diffs.append("\n".join(list(lines)[:_SHOWN_LINES]))
    return diffs


def write(repository: Path) -> None:
    """Write all generated files into the repository."""
    for path, text in generated_files(repository).items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 with `--check` where a file is outdated."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    if not parser.parse_args(arguments).check:
        write(REPOSITORY)
        return 0
    diffs = outdated(REPOSITORY)
    if diffs:
        print("\n".join(diffs), f"\nNot up to date: run `{COMMAND}`.", sep="\n", file=sys.stderr)
    return 1 if diffs else 0


if __name__ == "__main__":
    sys.exit(main())
