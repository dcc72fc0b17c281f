"""Tests that secrets are recognised by their names and never appear in a message."""

import pytest

from storage.indexes.embedding import collect_secrets, hide_secrets, is_secret


@pytest.mark.parametrize("name", ["api_key", "OPENAI_API_KEY", "auth_token", "password", "default_headers"])
def test_secret_names_are_recognised(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["model_name", "max_tokens", "keyboard", "url"])
def test_other_names_are_not_secret(name: str) -> None:
    assert not is_secret(name)


def test_nested_secrets_are_collected_but_not_variable_names() -> None:
    """`api_key_env_var` holds the name of a variable, which a message should show."""
    options = {"default_headers": {"Authorization": ["Bearer abcdef"]}, "api_key_env_var": "MY_OWN_KEY", "token": "x"}

    assert collect_secrets(options, {"SOME_TOKEN": "from-around", "HOME": "/home/me"}) == {
        "Bearer abcdef",
        "from-around",
    }


def test_secret_containing_another_is_hidden_completely() -> None:
    assert hide_secrets("got abcdefgh", {"abcdef", "abcdefgh"}) == "got [hidden]"


def test_partly_shown_key_is_hidden() -> None:
    assert hide_secrets("Incorrect API key provided: sk-proj-****abcd.", ()) == "Incorrect API key provided: [hidden]."
