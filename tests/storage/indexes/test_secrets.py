"""Secrets are recognised by their names, and never appear in a message."""

import pytest

from storage.indexes.embedding import collect_secrets, hide_secrets, is_secret


@pytest.mark.parametrize("name", ["api_key", "OPENAI_API_KEY", "auth_token", "password", "default_headers"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["model_name", "max_tokens", "keyboard", "url"])
def test_names_of_what_is_open(name: str) -> None:
    assert not is_secret(name)


def test_secrets_are_found_in_depth_but_not_the_names_of_variables() -> None:
    """`api_key_env_var` holds the name of a variable, which a message should show."""
    options = {"default_headers": {"Authorization": ["Bearer abcdef"]}, "api_key_env_var": "MY_OWN_KEY", "token": "x"}

    assert collect_secrets(options, {"SOME_TOKEN": "from-around", "HOME": "/home/me"}) == {
        "Bearer abcdef",
        "from-around",
    }


def test_a_secret_within_a_secret_leaves_nothing_behind() -> None:
    assert hide_secrets("got abcdefgh", {"abcdef", "abcdefgh"}) == "got [hidden]"


def test_a_key_half_shown_is_hidden() -> None:
    assert hide_secrets("Incorrect API key provided: sk-proj-****abcd.", ()) == "Incorrect API key provided: [hidden]."
