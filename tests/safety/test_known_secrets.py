"""Secrets are found among environment variables by their names; placeholders are none."""

import os
import re

import pytest

from jurygraph.errors import ConfigError, InputError
from jurygraph.safety.known_secrets import (
    find_secrets,
    is_placeholder,
    process_redactor,
    redacted_errors,
    refuse_secrets_in_config,
    variable_with_secret,
)
from jurygraph.schema import Config
from tests.rows import all_rows

PLAIN = "sk-canary-0123456789"


@all_rows(
    "name",
    [
        *("OPENAI_API_KEY", "WATSONX_APIKEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "APP_SECRET", "PGPASSWORD"),
        *("my_api_key", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "GIGACHAT_CREDENTIALS", "SNOWFLAKE_JWT"),
        *("OPENAI_API_KEY_2", "API_KEY2", "DB_PASSWORD1", "SMTP_PASS", "DB_PWD", "SSH_PASSPHRASE", "Db_Password"),
    ],
)
def test_a_variable_that_is_named_like_a_secret_holds_one(name: str) -> None:
    assert find_secrets({name: f" {PLAIN}\n", "HOME": "/home/somebody"}) == [PLAIN]


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "KEYRING_BACKEND", "MONKEYS", "HOME", "SSH_KEY_PATH", "TOKEN_FILE"]
)
def test_a_name_with_such_a_word_inside_another_word_is_no_secret(name: str) -> None:
    assert find_secrets({name: PLAIN}) == []


@pytest.mark.parametrize("name", ["AZURE_API_BASE", "OPENAI_BASE_URL", "MY_ENDPOINT", "OLLAMA_HOST", "SENTRY_DSN"])
def test_the_password_of_a_server_is_a_secret(name: str) -> None:
    assert find_secrets({name: "https://me:hunter22@judge/v1"}) == ["hunter22"]


def test_a_password_in_a_url_is_a_secret_both_encoded_and_decoded() -> None:
    found = find_secrets(
        {"https_proxy": "http://me:p%40ssword@proxy:8080", "DATABASE_URL": "postgres://me:hunter22@db/x"}
    )
    assert sorted(found) == ["hunter22", "p%40ssword", "p@ssword"]


@pytest.mark.parametrize(
    "address", ["http://proxy:8080", "http://me@proxy", "http://[::1", "", "http://me:short@proxy"]
)
def test_an_address_without_a_password_holds_no_secret(address: str) -> None:
    assert find_secrets({"HTTP_PROXY": address}) == []


@all_rows(
    "value",
    [
        *("password", "PASSWORD", "changeme", "change-me", "disabled", "response", "created_at_time", "not-needed"),
        *("test1234", "admin123", "your-openai-api-key-here", "sk-xxxxxxxx", "EMPTY-KEY", "20261122", "", "********"),
        *("a1b2c3d", "--------"),
    ],
)
def test_words_dates_and_placeholders_are_no_secrets(value: str) -> None:
    assert is_placeholder(value)
    assert find_secrets({"MY_API_KEY": value}) == []


@pytest.mark.parametrize(
    "value",
    ["hunter22", "abcdefghijklmnop", "correct-horse-battery-staple", "Tr0ub4dor", "sk-test-8f3a91", "493817205561"],
)
def test_anything_else_is_a_secret(value: str) -> None:
    assert not is_placeholder(value)


def test_the_secret_fields_of_credentials_in_json_are_secrets_too() -> None:
    key, mail = "-----BEGIN X9-----abc1", "judge-7@project-12.example"
    fields = f'"type": "service_account", "client_email": "{mail}", "token_lifetime": 3600, "private_key": "{key}"'
    found = find_secrets({"GOOGLE_CREDENTIALS": f"{{{fields}}}"})
    assert found[1:] == [key]
    assert mail not in found


def test_the_secret_parameters_of_an_address_are_secrets() -> None:
    assert find_secrets({"HOOK_URL": "https://hooks.example/x?api_key=a1b2c3d4e5&team=blue-team-99"}) == ["a1b2c3d4e5"]


def test_a_variable_is_named_by_its_secret_in_a_text() -> None:
    environment = {"HOME": "/home/ann", "MY_TOKEN": PLAIN}
    assert variable_with_secret(f'{{"key": "{PLAIN}"}}', environment) == "MY_TOKEN"
    assert variable_with_secret("nothing", environment) is None


def test_the_redactor_of_the_process_is_built_once_and_knows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_API_KEY", PLAIN)
    redactor = process_redactor()
    assert process_redactor() is redactor
    assert redactor.redact_text(f"401 {PLAIN}") == "401 [redacted]"
    monkeypatch.setitem(os.environ, "CANARY_API_KEY", "another-9876543210")
    assert process_redactor().redact_text("another-9876543210") == "[redacted]"


def test_only_jurygraphs_own_errors_are_redacted() -> None:
    with pytest.raises(InputError) as ours, redacted_errors([PLAIN]):
        raise InputError(f"a line says {PLAIN}", 7)
    assert ours.value.args == ("a line says [redacted]", 7)
    with pytest.raises(ValueError, match=PLAIN), redacted_errors([PLAIN]):
        raise ValueError(PLAIN)


def test_a_secret_in_a_config_is_found_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", PLAIN)
    for params, place in (
        ({"keys": ["plain", {"inner": PLAIN}]}, "evaluators[0].params.keys[1].inner"),
        ({"keys": {PLAIN: 1}}, "evaluators[0].params.keys"),
    ):
        config = Config.model_validate({"evaluators": [{"use": "maths.accuracy", "params": params}]})
        with pytest.raises(ConfigError, match=f"^{re.escape(place)}: holds the secret of SOME_API_KEY"):
            refuse_secrets_in_config(config)
