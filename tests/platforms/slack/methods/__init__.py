"""The methods of the Web API that the fake Slack knows, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from tests.platforms.slack.calls import Method
from tests.platforms.slack.methods import assistant, chat, conversations, people, streams, views

METHODS: Mapping[str, Method] = MappingProxyType(
    {
        name: how
        for family in (assistant, chat, conversations, people, streams, views)
        for name, how in family.METHODS.items()
    }
)
