"""The config of calls: nothing secret stands in it, and nothing that the calls themselves set."""

from typing import Any

import pytest
from pydantic import ValidationError

from jurygraph.schema import CallsConfig

CANARY = "sk-canary-0123456789"


def refused(**calls: Any) -> str:
    with pytest.raises(ValidationError) as raised:
        CallsConfig.model_validate(calls)
    return raised.value.errors(include_input=False)[0]["msg"]


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "apikey", "API_KEY", "api-key", "aws_access_key_id", "aws_secret_access_key", "aws_session_token"),
        *("azure_ad_token", "client_secret", "azure_password", "vertex_credentials", "authorization", "x-api-key"),
        *("headers", "extra_headers", "default_headers", "api_base", "base_url", "openai_api_base"),
    ],
)
def test_a_parameter_that_is_a_secret_or_an_address_is_refused(name: str) -> None:
    for parameters in ({name: CANARY}, {"extra_body": {"inner": [{name: CANARY}]}}):
        said = refused(parameters=parameters)
        assert f"`{name}` is a secret or an address, and a config holds none" in said
        assert CANARY not in said


@pytest.mark.parametrize(
    "name",
    [
        *("temperature", "seed", "stop_token_ids", "prompt_cache_key", "logit_bias", "max_tokens_per_doc", "metadata"),
        *("reasoning_effort", "skip_special_tokens", "min_tokens", "api_version", "guided_json", "service_tier"),
    ],
)
def test_other_parameters_are_the_providers(name: str) -> None:
    assert CallsConfig(parameters={name: 1}).parameters == {name: 1}


@pytest.mark.parametrize("name", ["model", "messages", "response_format", "stream", "n", "tools"])
def test_what_the_calls_set_is_refused(name: str) -> None:
    for parameters in ({name: 1}, {"extra_body": {name: 1}}):
        assert refused(parameters=parameters).endswith(f"`{name}` is for the calls themselves to set; leave it out")


@pytest.mark.parametrize("limit", [0, -1, 4000.0, "4000", True])
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_of_tokens_is_a_whole_number(name: str, limit: Any) -> None:
    assert f"`{name}` is not a whole number of tokens" in refused(parameters={name: limit})


def test_one_limit_of_tokens_may_take_the_place_of_the_other_but_one_there_is() -> None:
    assert CallsConfig(parameters={"max_tokens": None, "max_completion_tokens": 4000})
    assert "nothing else limits a reply" in refused(parameters={"max_tokens": None})


@pytest.mark.parametrize("key", [CANARY, "gsk_abcdef0123456789", "", "1KEY", "A KEY"])
def test_the_key_itself_in_the_place_of_its_variable_is_refused_and_not_repeated(key: str) -> None:
    said = refused(key=key)
    assert "is not a name of an environment variable" in said
    assert not key or key not in said
