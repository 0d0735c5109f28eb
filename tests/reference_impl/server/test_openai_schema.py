"""The server answers every request that OpenAI's schema allows, or refuses it in words; it never fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving_http import HTTP, alphabet_service, metrics, serving, until

from reference_impl.loadtest.idle import leftovers

SCHEMAS = yaml.safe_load((Path(__file__).parent / "openai_requests.yml").read_text(encoding="utf-8"))
# The tests' model fails on purpose after these two, and halves of surrogate pairs are no text that JSON could hold.
TEXT = st.text(st.characters(exclude_characters="?!", exclude_categories=["Cs"]), max_size=6)
FAILING = (ord("?"), ord("!"))


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema allows: the part of JSON Schema that the file beside this one uses."""
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([values(one) for one in schema["anyOf"]])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return st.one_of([_of_kind(kind, schema) for kind in kinds])


def _of_kind(kind: str, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    low, high = schema.get("minimum"), schema.get("maximum")
    match kind:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "string":
            return TEXT
        case "integer":
            return st.integers(low, high).filter(lambda value: value not in FAILING)
        case "number":
            return st.integers(low, high) | st.floats(low, high)
        case "array":
            return st.lists(values(schema["items"]), max_size=schema["maxItems"])
    if "keys" in schema:
        return st.dictionaries(st.sampled_from(schema["keys"]), values(schema["additionalProperties"]))
    fields = {name: values(one) for name, one in schema.get("properties", {}).items()}
    required = schema.get("required", [])
    optional = {name: one for name, one in fields.items() if name not in required}
    return st.fixed_dictionaries({name: fields[name] for name in required}, optional=optional)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    service, model = alphabet_service()
    model.logits[[ord("?"), ord(" ")]] = model.logits[
        ord("a")
    ].clone()  # so that no answer comes to what fails on purpose
    with serving(service) as address:
        yield address
        until(lambda: leftovers(metrics(address)) == [])


@pytest.mark.parametrize("endpoint", SCHEMAS)
def test_no_request_of_the_published_schema_makes_the_server_fail(url: str, endpoint: str) -> None:
    statuses: set[int] = set()

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(values(SCHEMAS[endpoint]))
    def check(body: dict[str, Any]) -> None:
        reply = HTTP.post(f"{url}/v1/{endpoint}", json=body)
        statuses.add(reply.status_code)
        assert reply.status_code in (200, 400), reply.text
        if reply.status_code == 400:
            assert reply.json()["error"]["message"]
        elif not body.get("stream"):
            assert reply.json()["choices"]
        else:
            events = [line for line in reply.text.split("\n") if line]
            assert events[-1] == "data: [DONE]"
            assert all("choices" in json.loads(line.removeprefix("data: ")) for line in events[:-1])

    check()
    assert 400 in statuses


@pytest.mark.parametrize("endpoint", SCHEMAS)
def test_the_smallest_request_of_the_schema_is_answered(url: str, endpoint: str) -> None:
    what = {"prompt": "a"} if endpoint == "completions" else {"messages": [{"role": "user", "content": "a"}]}
    assert HTTP.post(f"{url}/v1/{endpoint}", json={"model": "alphabet", "max_tokens": 2} | what).status_code == 200
