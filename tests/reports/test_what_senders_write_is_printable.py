"""No text of a report can move a cursor or forge a line, wherever it is shown later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from gpumem_operator.reports.report import Report, Sent
from report_builders import gpu, process, raw_report

ODD = st.text(st.sampled_from("torch 2.9\x1b[2J\n\r\x07\u202e\u200b\x9b"), max_size=12)


def texts(value: Any) -> Iterator[str]:
    """All in it, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)


@pytest.mark.parametrize("model", Sent.__subclasses__(), ids=lambda model: model.__name__)
def test_no_field_takes_a_text_as_it_comes(model: type[Sent]) -> None:
    """Whatever is added to the format: it has the type for such texts, a pattern or its values."""
    for name, field in model.model_fields.items():
        form: Any = Annotated[field.annotation, "as in the model", *field.metadata]
        kind: TypeAdapter[Any] = TypeAdapter(form)
        try:
            found = kind.validate_python("\x1b")
        except ValidationError:
            continue
        assert found == "?", name


@given(st.data())
def test_every_text_of_a_report_is_printable(data: st.DataObject) -> None:
    claim = {"frameworks": [{"name": data.draw(ODD), "version": data.draw(ODD)}]}
    one = process(pod=data.draw(ODD), container=data.draw(ODD), container_id=data.draw(ODD))
    card = gpu() | {"model": data.draw(ODD)}
    raw = raw_report(one | {"shim": claim}, gpus=[card], given={("pod-1", data.draw(ODD)): []})
    raw["driverVersion"] = data.draw(ODD)
    raw["acknowledgements"] = [{"id": data.draw(ODD), "result": "Done"}]
    for given_to in raw["assignments"]:
        given_to["podNamespace"] = given_to["podName"] = data.draw(ODD)
    report = Report.model_validate(raw)
    assert all(text.isprintable() for text in texts(report.model_dump()))
