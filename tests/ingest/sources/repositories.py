"""Git repositories for tests, made with the git program."""

import os
import subprocess
from pathlib import Path

MIDNIGHT = 1_700_000_000
A_DAY = 86_400


class Team:
    """Commits to a repository, each commit one day after the previous one."""

    def __init__(self, path: Path, *, branch: str = "main") -> None:
        self.path = path
        self.day = 0
        path.mkdir(parents=True)
        self.git("init", "--quiet", f"--initial-branch={branch}")

    def git(self, *arguments: str, content: bytes | None = None) -> str:
        """Run git without user settings."""
        moment = f"{MIDNIGHT + self.day * A_DAY} +0000"
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _WHO.items()}
        dates = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
        clean = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments], env={**clean, **who, **dates}, input=content,
            check=True, capture_output=True,
        )  # fmt: skip
        return done.stdout.decode().strip()

    def commit(self, *arguments: str, **files: str | bytes | None) -> str:
        """Write files (`a__b_md` is a/b.md), delete those that are None, commit on the next day; return the commit."""
        for name, content in files.items():
            path = self.path / (name.replace("__", "/")[::-1].replace("_", ".", 1)[::-1])
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.day += 1
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=A day's work", "--allow-empty", *arguments)
        return self.git("rev-parse", "HEAD")


_WHO = {"NAME": "Team", "EMAIL": "team@example.com"}
