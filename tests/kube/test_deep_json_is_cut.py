"""Objects that are nested deeper than Python's decoder goes."""

from __future__ import annotations

import json
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from gpumem_operator.kube.decoding import cut

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


def nested(levels: int) -> str:
    return '{"f:a":' * levels + "{}" + "}" * levels


@settings(deadline=None)
@given(DOCUMENTS)
def test_a_document_that_is_not_deep_stays_as_it_is(document: object) -> None:
    text = json.dumps(document)
    assert cut(text) == text


@given(DOCUMENTS, st.integers(min_value=1, max_value=3))
def test_what_is_cut_is_json_still(document: object, deepest: int) -> None:
    json.loads(cut(json.dumps({"a": document, "b": [document]}), deepest))


def test_what_stands_beside_the_depth_is_kept() -> None:
    deep = nested(5000)
    text = f'{{"metadata": {{"managedFields": {deep}, "name": "a[{{\\"b"}}}}'
    found = json.loads(cut(text))
    assert found["metadata"]["name"] == 'a[{"b'


def test_a_process_that_installed_it_reads_what_the_api_server_stores() -> None:
    program = (
        "from gpumem_operator.kube import decoding; decoding.install(); decoding.install()\n"
        "import json, aiohttp.typedefs\n"
        "text = '{\"a\":' * 10000 + '1' + '}' * 10000\n"
        "assert json.loads(text)['a']['a'] is not None\n"
        "assert aiohttp.typedefs.DEFAULT_JSON_DECODER(text.encode())['a'] is not None\n"
        "assert json.loads('[1.5]', parse_float=str) == ['1.5']\n"
        "assert json.loads('[1, -2.5, null, \"\\\\ud800\"]') == [1, -2.5, None, '\\ud800']\n"
        "assert json.loads(b'\\xef\\xbb\\xbf{}') == {}\n"
        "try: json.loads('{')\n"
        "except json.JSONDecodeError as error: assert 'Expecting' in str(error)\n"
        "else: raise SystemExit(1)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
