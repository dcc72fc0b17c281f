"""What stands between the braces of a template: its name and its arguments."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one template, by place and by name, without surrounding whitespace."""

    places: tuple[str, ...]
    names: dict[str, str]
    language: str = ""
    """The wiki's, ISO 639-1: what a template says may hang on it."""

    def at(self, place: int) -> str:
        """The argument at a place, counted from 0; empty if there is none."""
        return self.places[place] if place < len(self.places) else self.names.get(str(place + 1), "")

    def named(self, *names: str) -> str:
        """The first argument under one of these names, written so or with a capital, that is not empty."""
        written = (form for name in names for form in (name, name.capitalize()))
        return next((self.names[name] for name in written if self.names.get(name)), "")


def parse(rest: str, language: str = "") -> Arguments:
    """Read what follows a template's name and the first pipe. Links and templates within are text already."""
    places: list[str] = []
    names: dict[str, str] = {}
    for part in rest.split("|"):
        name, equals, value = part.partition("=")
        if equals:
            names[name.strip()] = value.strip()
        else:
            places.append(part.strip())
    return Arguments(tuple(places), names, language)
