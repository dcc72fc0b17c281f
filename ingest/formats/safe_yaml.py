"""YAML -> plain values, by a loader that a few lines cannot exhaust: neither by their depth nor by what they merge."""

from collections.abc import Iterator
from typing import Any

import yaml

_DEEPEST = 100
"""Collections within collections."""
_MOST_MERGED = 10_000
"""Keys that a mapping may take over from others by `<<`, which may take them over themselves."""


class _Loader(yaml.SafeLoader):
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Read one value."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise yaml.composer.ComposerError(None, None, "collections are nested too deeply", None)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Take over what a mapping merges."""
        super().flatten_mapping(node)
        if len(node.value) > _MOST_MERGED:
            raise yaml.constructor.ConstructorError(None, None, "mappings merge too much", node.start_mark)


def load(text: str) -> Any:
    """Read one document. Raises `yaml.YAMLError`."""
    return yaml.load(text, _Loader)  # noqa: S506 - it is a safe one


def load_all(text: str) -> Iterator[Any]:
    """Read one document or several. Raises `yaml.YAMLError`."""
    return iter(yaml.load_all(text, _Loader))
