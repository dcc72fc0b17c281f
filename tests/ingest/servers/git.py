"""A git server on 127.0.0.1: git's `http-backend` behind a strict HTTP server."""

import base64
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.ingest.servers.web import Answer, Request, serve


@contextmanager
def served(root: Path, *, login: str = "", redirect: str = ""):
    """Serve the repositories under a folder; yield the server.

    `login`: `user:password`, required if set. `redirect`: the target of all requests.
    """

    def answer(request: Request) -> Answer:
        if redirect:
            return Answer(301, b"", {"Location": redirect + request.path})
        if login and request.headers.get("authorization") != "Basic " + base64.b64encode(login.encode()).decode():
            return Answer(401, b"", {"WWW-Authenticate": 'Basic realm="git"'})
        return _run_backend(root, request)

    with serve(answer) as server:
        yield server


def _run_backend(root: Path, request: Request) -> Answer:
    url = urlsplit(request.path)
    variables = {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(root),
        "PATH_INFO": url.path,
        "QUERY_STRING": url.query,
        "REQUEST_METHOD": request.method,
        "CONTENT_TYPE": request.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(request.form)),
        "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
        "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
    }
    result = subprocess.run(["git", "http-backend"], env=variables, input=request.form, capture_output=True, check=True)
    head, _, content = result.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    return Answer(int(headers.pop("Status", "200").split()[0]), content, headers)
