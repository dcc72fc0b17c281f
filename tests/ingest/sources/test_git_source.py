"""A git repository: listed and changed files, unreadable ones, and isolation of git."""

import base64
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ingest.sources.default_ignore import DEFAULT_IGNORE
from ingest.sources.filters import SelectionRules
from ingest.sources.git.git_mirror import GitMirror
from ingest.sources.git.git_program import GitRemote
from ingest.sources.git.git_source import GitSource, RepositoryScope
from ingest.types import ChangedDocument, DeletedDocument, SourceUnavailable, Unreadable, UnreadableDocument
from tests.ingest.servers.git import served
from tests.ingest.sources.repositories import A_DAY, MIDNIGHT, Team

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def team(tmp_path):
    return Team(tmp_path / "theirs")


def mirrored(tmp_path, address, *, branch="", depth=0, token="", environment=os.environ):
    return GitMirror(GitRemote(str(address), token), tmp_path / "home", environment, branch=branch, depth=depth)


def source(tmp_path, address, *, now=lambda: datetime.now(UTC), branch="", depth=0, token="", **scope):
    """Make a source of a team's repository, or of an address."""
    mirror = mirrored(tmp_path, getattr(address, "path", address), branch=branch, depth=depth, token=token)
    return GitSource(mirror, RepositoryScope(**scope), now=now)


def listed(git_source, known=None):
    return {item.key: item for item in git_source.documents(known or {})}


def day(number):
    return datetime.fromtimestamp(MIDNIGHT + number * A_DAY, UTC)


def test_files_have_date_commit_and_address(tmp_path, team):
    first = team.commit(a_md="# A\n\nText.", docs__b_md="# B\n\nMore.")
    second = team.commit(docs__b_md="# B\n\nOther.")
    git_source = source(tmp_path, team, template="https://x.org/{branch}/{commit}/{path}")

    assert git_source.expected() == 2
    listing = git_source.documents()
    pages = {item.key: item.load() for item in listing}

    assert listing.whole
    assert listing.edition == second[:12]
    assert [page.title for page in pages.values()] == ["A", "B"]
    assert pages["a.md"].date == day(1)
    assert pages["docs/b.md"].date == day(2)
    assert pages["a.md"].url == f"https://x.org/main/{first}/a.md"
    assert pages["docs/b.md"].revision == f"git:{second[:12]}"
    assert not list((tmp_path / "home").rglob("*.md"))


def test_only_changed_files_get_new_fingerprints(tmp_path, team):
    team.commit(a_md="A.", b_md="B.", c_md="C.")
    known = {key: item.fingerprint for key, item in listed(source(tmp_path, team)).items()}
    team.commit(b_md="Other.")
    team.git("mv", "c.md", "d.md")
    team.commit()

    now = listed(source(tmp_path, team), known)

    assert sorted(now) == ["a.md", "b.md", "d.md"]
    assert [key for key, item in now.items() if known.get(key) != item.fingerprint] == ["b.md", "d.md"]
    assert now["b.md"].load().date == day(2)
    team.commit(b_md="B.")
    assert listed(source(tmp_path, team))["b.md"].fingerprint == known["b.md"]


def test_rewritten_branch_is_read(tmp_path, team):
    team.commit(a_md="A.", b_md="B.")
    known = {key: item.fingerprint for key, item in listed(source(tmp_path, team)).items()}
    team.commit("--amend", a_md="Another.", b_md=None, c_md="C.")
    team.git("reflog", "expire", "--expire=now", "--all")
    team.git("gc", "--quiet", "--prune=now")

    now = listed(source(tmp_path, team), known)

    assert sorted(now) == ["a.md", "c.md"]
    assert now["a.md"].fingerprint != known["a.md"]
    assert now["c.md"].load().date == day(2)


def test_branch_and_folder_are_selected(tmp_path, team):
    team.commit(handbook__x__a_md="A.", other_md="O.")
    team.git("checkout", "--quiet", "-b", "drafts/2")
    team.commit(handbook__x__b_md="B.")

    git_source = source(tmp_path, team, branch="drafts/2", folder="handbook", template="https://x.org/{branch}/{path}")
    main = source(tmp_path, team, branch="main", folder="/handbook/", template="https://docs.x.org")

    assert {key: item.load().url for key, item in listed(git_source).items()} == {
        "x/a.md": "https://x.org/drafts/2/handbook/x/a.md",
        "x/b.md": "https://x.org/drafts/2/handbook/x/b.md",
    }
    assert {key: item.load().url for key, item in listed(main).items()} == {"x/a.md": "https://docs.x.org/x/a.md"}
    for wrong, message in (({"branch": "nowhere"}, "no branch nowhere"), ({"folder": "nowhere"}, "no folder nowhere")):
        with pytest.raises(SourceUnavailable, match=message) as error:
            source(tmp_path, team, **wrong).documents()
        assert error.value.hint


def test_merged_files_have_the_date_of_the_merge(tmp_path, team):
    team.commit(a_md="A.")
    team.git("checkout", "--quiet", "-b", "aside")
    team.commit(b_md="B.")
    team.git("checkout", "--quiet", "main")
    team.commit(a_md="Other.")
    team.day += 1
    team.git("merge", "--quiet", "--no-edit", "aside")

    dates = {key: item.load().date for key, item in listed(source(tmp_path, team)).items()}

    assert dates == {"a.md": day(3), "b.md": day(4)}


def test_page_is_found_by_its_published_address(tmp_path, team):
    team.commit(content__leave_md="A.", content__pay_md="---\nurl: /salary/\n---\nB.")
    git_source = source(tmp_path, team, template="https://x.org", site="hugo")

    assert [item.load().url for item in git_source.documents()] == ["https://x.org/leave/", "https://x.org/salary/"]
    assert git_source.one("https://x.org/salary/", {}).key == "content/pay.md"
    assert git_source.one("https://x.org/leave/", {}).key == "content/leave.md"
    assert git_source.one("https://x.org/none/", {}) is None


def test_folder_rules_apply_to_repositories(tmp_path, team):
    team.commit(a_md="A.", node_modules__c_md="C.", drafts__d_md="D.", e_png="E", f_md="F" * 2000)
    lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 5\n"
    team.commit(g_md=lfs, **{".github__b_md": "B."})

    files = listed(
        source(tmp_path, team, rules=SelectionRules(exclude=("drafts",), ignore=DEFAULT_IGNORE), largest=1000)
    )

    assert sorted(files) == ["a.md", "e.png", "f.md", "g.md"]
    assert {key: item.reason for key, item in files.items() if isinstance(item, Unreadable)} == {
        "e.png": "pictures are not read",
        "f.md": "is larger than 0 MB",
    }
    with pytest.raises(UnreadableDocument, match="Git LFS"):
        files["g.md"].load()


def test_files_are_selected_by_last_change(tmp_path, team):
    team.commit(a_md="A.", b_md="B.")
    team.commit(c_md="C.")
    team.commit(a_md="Other.")

    def keys(at, **kwargs):
        rules = SelectionRules(newest_days=1.5)
        return sorted(listed(source(tmp_path, team, rules=rules, now=lambda: at, **kwargs)))

    assert keys(day(3)) == ["a.md", "c.md"]
    assert keys(day(3) + timedelta(days=1)) == ["a.md"]
    assert keys(day(3), depth=1) == ["a.md", "b.md", "c.md"]


def test_shallow_history_gives_no_inexact_dates(tmp_path, team):
    team.commit(a_md="A.")
    team.commit(b_md="B.")
    team.commit(c_md="C.")

    files = listed(source(tmp_path, f"{team.path}/.git", depth=2))

    assert len(next((tmp_path / "home").glob("*/shallow")).read_text().split()) == 1
    assert {key: item.load().date for key, item in files.items()} == {"a.md": None, "b.md": None, "c.md": day(3)}


def test_links_and_submodules_are_not_followed(tmp_path, team):
    team.commit(a_md="A.")
    (team.path / "b.md").symlink_to("/etc/passwd")
    (team.path / "c").symlink_to("..")
    team.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module.md")
    team.git("add", "b.md", "c")
    team.git("commit", "--quiet", "--message=Links")

    files = listed(source(tmp_path, team, rules=SelectionRules(include=("*.md",))))

    assert {key: item.reason for key, item in files.items() if isinstance(item, Unreadable)} == {
        "b.md": "is a symbolic link, which may lead anywhere: include the file itself",
        "module.md": "is a submodule: add its repository as a separate corpus",
    }
    assert isinstance(files["a.md"], ChangedDocument)


def test_undecodable_names_and_escaping_paths_are_harmless(tmp_path, team):
    blob = team.git("hash-object", "-w", "--stdin", content=b"Text.")
    inner = team.git("mktree", "-z", content=f"100644 blob {blob}\tx.md\0".encode())
    names = [b"caf\xe9.md", b"line\nbreak.md", b"-rf.md", "Bu\u0308ro.md".encode(), "Büro.md".encode()]
    lines = [b"100644 blob " + blob.encode() + b"\t" + name + b"\0" for name in names]
    lines += [b"040000 tree " + inner.encode() + b"\t..\0"]
    tree = team.git("mktree", "-z", content=b"".join(lines))
    team.git("update-ref", "refs/heads/main", team.git("commit-tree", tree, "-m", "Odd"))

    items = list(source(tmp_path, team).documents())

    files = [item.key for item in items if isinstance(item, ChangedDocument)]
    assert sorted(files) == ["-rf.md", "Büro.md", "caf\ufffd.md", "line\nbreak.md"]
    assert [item.key for item in items if isinstance(item, Unreadable)] == ["Büro.md"]
    assert all(item.load().title for item in items if isinstance(item, ChangedDocument))


def test_single_document_is_read_by_address_or_path(tmp_path, team):
    commit = team.commit(a_md="A.", b_md="B.")
    git_source = source(tmp_path, team, template="https://x.org/{commit}/{path}")

    by_path, by_address = git_source.one("a.md", {}), git_source.one(f"https://x.org/{commit}/a.md", {})

    assert (by_path.key, by_address.key) == ("a.md", "a.md")
    assert by_path.load().date == day(1)
    assert by_path.fingerprint == listed(git_source)["a.md"].fingerprint
    team.commit(a_md=None)
    assert git_source.one("a.md", {"a.md": "known"}) == DeletedDocument("a.md")
    assert git_source.one("a.md", {}) is None


def test_broken_mirror_is_rebuilt(tmp_path, team):
    team.commit(a_md="A.")
    listed(source(tmp_path, team))
    (mirror,) = (path for path in (tmp_path / "home").iterdir() if path.is_dir())
    lock = mirror / "refs/footnote/head.lock"

    def pack_is_cut():
        for pack in (mirror / "objects").rglob("*"):
            if pack.is_file():
                pack.chmod(0o600)
                pack.write_bytes(pack.read_bytes()[:10])

    for damage in (pack_is_cut, (mirror / "HEAD").unlink, lambda: lock.write_bytes(b"")):
        damage()
        team.commit(a_md=f"After {team.day}.")
        [item] = source(tmp_path, team).documents()
        assert item.load().sections[0].blocks[0].text == f"After {team.day - 1}."


def test_unchanged_branch_is_not_fetched(tmp_path, team):
    team.commit(a_md="A.")
    with served(team.path) as server:
        listed(source(tmp_path, f"{server.url}/.git"))
        before = len(server.requests)
        listed(source(tmp_path, f"{server.url}/.git"))

    assert len(server.requests) - before == 2  # its capabilities, and its branches


def test_token_grants_access_and_is_never_written(tmp_path, team):
    token = "s3cret-t0ken-0123456789"
    team.commit(a_md="A.")
    with served(team.path, login=f"x-access-token:{token}") as server:
        mirror = mirrored(tmp_path, f"{server.url}/.git", token=token)
        assert list(listed(GitSource(mirror, RepositoryScope()))) == ["a.md"]
        credentials = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        assert server.requests[-1].headers["authorization"] == f"Basic {credentials}"
        with pytest.raises(SourceUnavailable, match="denies access") as error:
            listed(source(tmp_path, f"{server.url}/.git", token=f"{token}-wrong"))

    written = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert token.encode() not in written
    assert credentials.encode() not in written
    assert token not in f"{error.value} {error.value.hint} {mirror.git._remote!r}"


def test_token_is_not_sent_to_redirect_targets(tmp_path, team):
    team.commit(a_md="A.")
    with served(team.path) as other, served(team.path, redirect=other.url) as server:
        with pytest.raises(SourceUnavailable, match="cannot be fetched"):
            listed(source(tmp_path, f"{server.url}/.git", token="s3cret"))
        assert not other.requests
        assert list(listed(source(tmp_path, f"{server.url}/.git"))) == ["a.md"]
        assert all("authorization" not in request.headers for request in other.requests)


def test_git_ignores_settings_and_hooks(tmp_path, team):
    team.commit(a_md="A.")
    hooks, trace = tmp_path / "hooks", tmp_path / "ran"
    hooks.mkdir()
    for name in ("reference-transaction", "post-checkout", "pre-auto-gc", "proc-receive"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {trace}\n")
        (hooks / name).chmod(0o700)
    user = tmp_path / "user"
    user.mkdir()
    (user / ".gitconfig").write_text(
        f'[core]\n\thooksPath = {hooks}\n[url "ext::touch {trace} #"]\n\tinsteadOf = {team.path}\n'
    )
    hostile = {
        "HOME": str(user),
        "GIT_DIR": str(user),
        "GIT_TRACE": str(trace),
        "GIT_SSH_COMMAND": f"touch {trace}",
        "GIT_CONFIG_PARAMETERS": f"'core.hooksPath={hooks}'",
    }

    items = GitSource(
        mirrored(tmp_path, team.path, environment={**os.environ, **hostile}), RepositoryScope()
    ).documents()

    assert [item.key for item in items] == ["a.md"]
    assert not trace.exists()


def test_repository_of_another_user_is_readable(tmp_path, team):
    if os.geteuid():
        pytest.skip("only root can change owners")
    team.commit(a_md="A.")
    for path in [team.path, *team.path.rglob("*")]:
        os.chown(path, 12345, 12345, follow_symlinks=False)

    assert list(listed(source(tmp_path, team))) == ["a.md"]


@pytest.mark.parametrize(
    ("environment", "message"), [({"PATH": "/nowhere"}, "git program is not installed"), ({}, "There is no repository")]
)
def test_missing_program_or_repository_is_reported(tmp_path, environment, message):
    git_source = GitSource(
        mirrored(tmp_path, "/nowhere/at/all", environment={**os.environ, **environment}), RepositoryScope()
    )

    with pytest.raises(SourceUnavailable, match=message) as error:
        git_source.documents()
    assert "\n" not in str(error.value)
    assert error.value.hint


def test_old_git_is_rejected(tmp_path):
    old = tmp_path / "bin/git"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho git version 2.30.2\n")
    old.chmod(0o700)

    with pytest.raises(SourceUnavailable, match=r"too old \(git version 2.30.2\)"):
        GitSource(mirrored(tmp_path, "/x", environment={"PATH": str(old.parent)}), RepositoryScope()).documents()


def test_stop_ends_running_git(tmp_path, team):
    team.commit(a_md="A.", b_md="B.")
    git_source = source(tmp_path, team)
    items = git_source.documents().items
    next(items)

    git_source.stop()

    with pytest.raises(SourceUnavailable, match="was stopped"):
        [item.load() for item in items]
    with pytest.raises(SourceUnavailable, match="was stopped"):
        git_source.documents()


def test_readers_of_one_mirror_wait_for_each_other(tmp_path, team):
    team.commit(a_md="A.")
    one, other = source(tmp_path, team), source(tmp_path, team)

    assert list(listed(one)) == list(listed(other)) == ["a.md"]
    assert len([path for path in Path(tmp_path / "home").iterdir() if path.is_dir()]) == 1
