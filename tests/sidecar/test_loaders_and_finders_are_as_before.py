"""Whoever finds and loads modules for a program does it as if the shim were not there."""

from __future__ import annotations

import json
import zipfile

import pytest

from shimmed import Shimmed


def test_a_framework_keeps_its_loader_and_its_place(container: Shimmed) -> None:
    code = (
        "import torch, inspect, importlib\n"
        "print(type(torch.__loader__).__name__, inspect.getsource(torch).strip())\n"
        "print(torch.__spec__.loader is torch.__loader__, importlib.reload(torch) is torch)\n"
    )

    with_shim = container.start(code)

    assert with_shim.stdout == container.start(code, path=str(container.library)).stdout
    assert len(container.states()) == 1


@pytest.mark.parametrize(
    "question",
    [
        "vars(torch.__loader__)",
        "torch.__loader__ == SourceFileLoader('torch', torch.__file__)",
        "type(pickle.loads(pickle.dumps(torch.__spec__.loader)))",
        "found.loader == SourceFileLoader('torch', torch.__file__)",
        "isinstance(found.loader, SourceFileLoader), vars(found.loader)",
        "type(pickle.loads(pickle.dumps(found.loader)))",
        "type(copy.deepcopy(found).loader)",
        "found.loader.get_source('torch')",
    ],
)
def test_loaders_answer_as_before_and_after_the_import(container: Shimmed, question: str) -> None:
    code = (
        "import copy, importlib.util, pickle\n"
        "from importlib.machinery import SourceFileLoader\n"
        "found = importlib.util.find_spec('torch')\n"
        f"import torch; print({question})\n"
    )

    with_shim = container.start(code)

    assert with_shim.stdout == container.start(code, path=str(container.library)).stdout != ""
    assert len(container.states()) == 1


def test_a_loader_of_other_modules_listens_to_one(container: Shimmed) -> None:
    archive = container.folder / "application.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("torch.py", "__version__ = '2.9.0'")
        file.writestr("other.py", "__version__ = 'of another module'")

    container.start(
        f"import sys; sys.path.insert(0, {str(archive)!r}); import torch, other, importlib\n"
    )

    assert [json.loads(path.read_text())["frameworks"][0]["version"] for path in container.states()]
    assert "of another module" not in "".join(path.read_text() for path in container.states())


def test_a_loader_that_is_a_class_stays_as_it_is(container: Shimmed) -> None:
    result = container.start(
        "import sys\n"
        "from importlib.machinery import ModuleSpec\n"
        "class Loader:\n"
        "    create_module = staticmethod(lambda spec: None)\n"
        "    exec_module = staticmethod(lambda module: setattr(module, '__version__', '2.9.0'))\n"
        "class Finder:\n"
        "    find_spec = staticmethod(lambda name, path=None, target=None:\n"
        "        ModuleSpec(name, Loader) if name in ('torch', 'other') else None)\n"
        "before = vars(Loader).copy()\n"
        "sys.meta_path.append(Finder)\n"
        "sys.path.remove(" + repr(str(container.library)) + ")\n"
        "import torch, other\n"
        "loaders = torch.__loader__, torch.__spec__.loader\n"
        "print(vars(Loader) == before, loaders == (Loader, Loader))\n"
    )

    assert (result.stdout, result.stderr) == ("True True\n", "")
    assert len(container.states()) == 1


def test_a_finder_before_the_shims_is_asked_once(container: Shimmed) -> None:
    result = container.start(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': print('asked for', name)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import torch\n"
    )

    assert result.stdout == "asked for torch\n"
    assert len(container.states()) == 1


@pytest.mark.parametrize("lazy", ["the program", "a finder"])
def test_what_is_to_be_executed_later_is(container: Shimmed, lazy: str) -> None:
    container.module("torch", "print('executed'); __version__ = '2.9.0'")
    finder = (
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        spec = PathFinder.find_spec(name, path, target)\n"
        "        if spec is not None and name == 'torch':\n"
        "            spec.loader = LazyLoader(spec.loader)\n"
        "        return spec\n"
        "sys.meta_path.insert(1, Finder())\n"
        "import torch\n"
    )
    program = (
        "spec = find_spec('torch'); spec.loader = LazyLoader(spec.loader)\n"
        "torch = module_from_spec(spec); sys.modules['torch'] = torch\n"
        "spec.loader.exec_module(torch)\n"
    )

    result = container.start(
        "import sys\n"
        "from importlib.machinery import PathFinder\n"
        "from importlib.util import LazyLoader, find_spec, module_from_spec\n"
        + (finder if lazy == "a finder" else program)
        + "print('not yet'); print(torch.__version__)\n"
    )

    assert (result.stdout, result.stderr) == ("not yet\nexecuted\n2.9.0\n", "")
    assert len(container.states()) == 1
