"""The config of calls refuses secrets and parameters that jurygraph sets itself."""

from typing import Any

import pytest
from pydantic import ValidationError

from jurygraph.schema import CallsConfig
from tests.rows import all_rows

CANARY = "sk-canary-0123456789"


def refusal(**calls: Any) -> str:
    with pytest.raises(ValidationError) as raised:
        CallsConfig.model_validate(calls)
    return raised.value.errors(include_input=False)[0]["msg"]


@all_rows(
    "name",
    [
        *(
            "api_key",
            "apikey",
            "API_KEY",
            "api-key",
            "aws_access_key_id",
            "aws_secret_access_key",
            "aws_session_token",
        ),
        *(
            "azure_ad_token",
            "client_secret",
            "azure_password",
            "vertex_credentials",
            "authorization",
            "x-api-key",
        ),
        *("headers", "extra_headers", "default_headers", "api_base", "base_url", "openai_api_base"),
    ],
)
def test_a_parameter_that_is_a_secret_or_an_address_is_refused(name: str) -> None:
    for parameters in ({name: CANARY}, {"extra_body": {"inner": [{name: CANARY}]}}):
        message = refusal(parameters=parameters)
        assert f"`{name}` is a secret or an address, and a config holds none" in message
        assert CANARY not in message


@pytest.mark.parametrize(
    "name",
    [
        *(
            "temperature",
            "seed",
            "stop_token_ids",
            "prompt_cache_key",
            "logit_bias",
            "max_tokens_per_doc",
            "metadata",
        ),
        *(
            "reasoning_effort",
            "skip_special_tokens",
            "min_tokens",
            "api_version",
            "guided_json",
            "service_tier",
        ),
    ],
)
def test_other_parameters_go_to_the_provider(name: str) -> None:
    assert CallsConfig(parameters={name: 1}).parameters == {name: 1}


@pytest.mark.parametrize("name", ["model", "messages", "response_format", "stream", "n", "tools"])
def test_a_parameter_that_jurygraph_sets_itself_is_refused(name: str) -> None:
    for parameters in ({name: 1}, {"extra_body": {name: 1}}):
        assert refusal(parameters=parameters).endswith(
            f"`{name}` is for the calls themselves to set; leave it out"
        )


@all_rows("limit", [0, -1, 4000.0, "4000", True])
@all_rows("name", ["max_tokens", "max_completion_tokens"])
def test_a_token_limit_is_a_whole_number(name: str, limit: Any) -> None:
    assert f"`{name}` is not a whole number of tokens" in refusal(parameters={name: limit})


def test_one_of_the_two_token_limits_is_required() -> None:
    assert CallsConfig(parameters={"max_tokens": None, "max_completion_tokens": 4000})
    assert "nothing else limits a reply" in refusal(parameters={"max_tokens": None})


@pytest.mark.parametrize("key", [CANARY, "gsk_abcdef0123456789", "", "1KEY", "A KEY"])
def test_an_api_key_instead_of_its_variable_is_refused_and_not_repeated(key: str) -> None:
    message = refusal(key=key)
    assert "is not a name of an environment variable" in message
    assert not key or key not in message


def test_a_price_that_is_a_number_is_refused_with_its_fields() -> None:
    assert refusal(prices={"big": 2.5}).endswith(
        "is the number 2.5; write what a million tokens of prompts and of replies cost, as in {input: 0.25, output: 2}"
    )
