"""A fake mirror of Wikimedia's dumps on 127.0.0.1: dates, `dumpstatus.json` and files, as on a real one.

Like the real one, it refuses clients whose User-Agent has no contact (403), and more than two connections (429). Faults
of single paths are used up one by one.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tests.ingest.servers.web import Answer, Request, ranged

Fault = Callable[[Request, bytes], Answer | None]  # the answer instead of a file with this content; None: the file


@dataclass
class FakeMirror:
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[Fault]] = field(default_factory=dict)  # by the end of a path

    def publish(
        self,
        wiki: str,
        day: str,
        contents: Mapping[str, bytes],
        *,
        job: str = "articlesmultistreamdump",
        status: str = "done",
        others: Mapping[str, object] | None = None,
    ) -> None:
        """Publish a dump; `contents` by the part of a file's name after the date."""
        listed = {}
        for ending, content in contents.items():
            name = f"{wiki}-{day}-{ending}"
            self.files[f"/{wiki}/{day}/{name}"] = content
            listed[name] = {
                "size": len(content),
                "url": f"/{wiki}/{day}/{name}",
                "md5": hashlib.md5(content).hexdigest(),
                "sha1": hashlib.sha1(content).hexdigest(),
            }
        jobs = {
            "pagetable": {"status": "done", "updated": "2026-11-02 01:00:00", "files": {}},
            job: {"status": status, "updated": "2026-11-02 05:00:00", "files": listed},
            **(others or {}),
        }
        self.status(wiki, day, json.dumps({"version": "0.8", "jobs": jobs}).encode())

    def status(self, wiki: str, day: str, content: bytes) -> None:
        self.files[f"/{wiki}/{day}/dumpstatus.json"] = content

    def fault(self, ending: str, *faults: Fault) -> None:
        self.faults.setdefault(ending, []).extend(faults)

    def __call__(self, request: Request) -> Answer:
        if not re.search(r"\(.*(@|https?://).*\)", request.headers.get("user-agent", "")):
            return Answer(403, b"Please set a user-agent that says how you can be reached")
        path = request.path.partition("?")[0].replace("%3D", "=")
        content = self.files.get(path)
        for ending, left in self.faults.items():
            if path.endswith(ending) and left and (answer := left.pop(0)(request, content or b"")):
                return answer
        if content is not None:
            return ranged(request, content, etag=f'"{hashlib.sha1(content).hexdigest()[:12]}"')
        return self._listing(path) if path.endswith("/") else Answer(404, b"<h1>404 Not Found</h1>")

    def _listing(self, path: str) -> Answer:
        inside = {found[len(path) :].partition("/") for found in self.files if found.startswith(path)}
        names = sorted({name + slash for name, slash, _ in inside})
        if not names:
            return Answer(404, b"<h1>404 Not Found</h1>")
        names += ["latest/"] if path.count("/") == 2 else []
        lines = "".join(f'<a href="{name}">{name}</a>   02-Nov-2026 05:00   -\n' for name in names)
        page = (
            f"<html><head><title>Index of {path}</title></head><body><pre><a href='../'>../</a>\n{lines}</pre></body>"
        )
        return Answer(200, page.encode(), {"Content-Type": "text/html"})


def resets(after: int) -> Fault:
    """Break off after so many bytes."""
    return lambda request, content: ranged(
        request, content, etag=f'"{hashlib.sha1(content).hexdigest()[:12]}"', sent=after
    )


def stalls(after: int) -> Fault:
    """Send so many bytes, then stall."""
    return lambda request, content: replace(resets(after)(request, content), stalls=True)


def half(_request: Request, content: bytes) -> Answer:
    """Send half a file as if complete."""
    return Answer(200, content[: len(content) // 2])


def wrong(_request: Request, content: bytes) -> Answer:
    """Send the file with one wrong byte."""
    return Answer(200, content[:-1] + bytes([content[-1] ^ 1]))


def says(status: int, **headers: str) -> Fault:
    return lambda _request, _content: Answer(
        status, b"", {name.replace("_", "-"): value for name, value in headers.items()}
    )


def no_ranges(_request: Request, content: bytes) -> Answer:
    """Ignore ranges."""
    return Answer(200, content)


def as_ever(_request: Request, _content: bytes) -> None:
    """Answer normally."""
