"""Finds out whether the fake servers changed since their own tests, which are marked `fakes`, last passed.

`make test` runs those tests only after a change, or with SUITE=thorough. Run them and store the new digest with

    python -m tests.platforms.fakes_digest
"""

import hashlib
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_STORED = _HERE / "fakes.sha256"
_NOT_FAKES = {"workspace.py", "running.py"}


def compute_digest() -> str:
    """Return the digest of the fakes' source, and of their tests."""
    shared = [_HERE / f"{name}.py" for name in ("clock", "fake_server", "markup", "reading", "shapes")]
    own = (path for name in ("slack", "discord", "mattermost") for path in (_HERE / name).rglob("*.py"))
    tests = {"test_fake_server.py", "test_fake_blocks.py"}
    fakes = [path for path in own if path.name in tests or not path.name.startswith("test_")]
    digest = hashlib.sha256()
    for path in sorted([*shared, *(path for path in fakes if path.name not in _NOT_FAKES)]):
        digest.update(f"{path.relative_to(_HERE).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def are_unchanged() -> bool:
    return _STORED.exists() and _STORED.read_text().strip() == compute_digest()


if __name__ == "__main__":
    _STORED.unlink(missing_ok=True)
    digest = compute_digest()
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-m", "fakes", str(_HERE)], check=True)
    _STORED.write_text(f"{digest}\n")
