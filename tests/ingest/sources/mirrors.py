"""An index without a store that applies listings, to compare the results of different listings."""

from dataclasses import dataclass, field

from ingest.types import ChangedDocument, DeletedDocument, LiveSource, Page, Unreadable, UnreadableDocument


@dataclass
class Mirror:
    """Applies listings like a refresh: known documents are not loaded, unreadable ones keep their text."""

    known: dict[str, str] = field(default_factory=dict)
    pages: dict[str, Page] = field(default_factory=dict)
    mark: str = ""
    whole: bool = True  # whether the last listing was complete
    loaded: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)

    def sync(self, source: LiveSource) -> "Mirror":
        listing = source.documents(dict(self.known), self.mark)
        self.whole, self.loaded, self.failures, self.gone = listing.whole, [], {}, []
        seen = set()
        for item in listing:
            seen.add(item.key)
            match item:
                case ChangedDocument():
                    self._take(item)
                case Unreadable():
                    self.failures[item.key] = item.reason
                case DeletedDocument():
                    self._drop(item.key)
        if listing.whole:
            for key in set(self.known) - seen:
                self._drop(key)
        self.mark = listing.mark()
        return self

    def _take(self, item: ChangedDocument) -> None:
        if self.known.get(item.key) == item.fingerprint:
            return
        try:
            page = item.load()
        except UnreadableDocument as error:
            self.failures[item.key] = str(error)
        else:
            self.known[item.key], self.pages[item.key] = item.fingerprint, page
            self.loaded.append(page.title)

    def _drop(self, key: str) -> None:
        self.gone.append(key)
        self.known.pop(key, None)
        self.pages.pop(key, None)

    def titles(self) -> list[str]:
        return sorted(page.title for page in self.pages.values())

    def says(self, title: str) -> str:
        page = next(page for page in self.pages.values() if page.title == title)
        return " ".join(block.text for section in page.sections for block in section.blocks)
