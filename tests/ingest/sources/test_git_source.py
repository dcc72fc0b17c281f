"""A git repository: what is found, what is read again, what leads nowhere, and what git is kept from."""

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

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git program here")


@pytest.fixture
def team(tmp_path):
    """Return a team with a repository."""
    return Team(tmp_path / "theirs")


def mirrored(tmp_path, address, *, branch="", depth=0, token="", environment=os.environ):
    """Return the mirror of a repository, in a home of this test's."""
    return GitMirror(GitRemote(str(address), token), tmp_path / "home", environment, branch=branch, depth=depth)


def source(tmp_path, team, *, branch="", depth=0, now=lambda: datetime.now(UTC), **wanted):
    """Return a team's repository as a source, opened anew."""
    return GitSource(mirrored(tmp_path, team.path, branch=branch, depth=depth), RepositoryScope(**wanted), now=now)


def listed(there, known=None):
    """Return the items by their keys."""
    return {item.key: item for item in there.documents(known or {})}


def day(number):
    """Return the moment of a team's commit."""
    return datetime.fromtimestamp(MIDNIGHT + number * A_DAY, UTC)


def test_files_are_read_without_a_checkout(tmp_path, team):
    """Each with the day and the commit of its last change, and an address."""
    first = team.commit(a_md="# A\n\nText.", docs__b_md="# B\n\nMore.")
    second = team.commit(docs__b_md="# B\n\nOther.")
    there = source(tmp_path, team, template="https://x.org/{branch}/{commit}/{path}")

    assert there.expected() == 2
    listing = there.documents()
    pages = {item.key: item.load() for item in listing}

    assert listing.whole
    assert listing.edition == second[:12]
    assert [page.title for page in pages.values()] == ["A", "B"]
    assert pages["a.md"].date == day(1)
    assert pages["docs/b.md"].date == day(2)
    assert pages["a.md"].url == f"https://x.org/main/{first}/a.md"
    assert pages["docs/b.md"].revision == f"git:{second[:12]}"
    assert not list((tmp_path / "home").rglob("*.md"))


def test_only_what_changed_has_another_fingerprint(tmp_path, team):
    """A file under another name is one that is gone, and one that is new; one that went back is known again."""
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


def test_a_rewritten_branch_is_read_as_it_stands(tmp_path, team):
    """Whatever became of the commit that was read before."""
    team.commit(a_md="A.", b_md="B.")
    known = {key: item.fingerprint for key, item in listed(source(tmp_path, team)).items()}
    team.commit("--amend", a_md="Another.", b_md=None, c_md="C.")
    team.git("reflog", "expire", "--expire=now", "--all")
    team.git("gc", "--quiet", "--prune=now")

    now = listed(source(tmp_path, team), known)

    assert sorted(now) == ["a.md", "c.md"]
    assert now["a.md"].fingerprint != known["a.md"]
    assert now["c.md"].load().date == day(2)


def test_a_branch_and_a_folder(tmp_path, team):
    """Keys are within the folder; addresses name the branch, and the path in the repository."""
    team.commit(handbook__x__a_md="A.", other_md="O.")
    team.git("checkout", "--quiet", "-b", "drafts/2")
    team.commit(handbook__x__b_md="B.")

    there = source(tmp_path, team, branch="drafts/2", folder="handbook", template="https://x.org/{branch}/{path}")
    main = source(tmp_path, team, branch="main", folder="/handbook/", template="https://docs.x.org")

    assert {key: item.load().url for key, item in listed(there).items()} == {
        "x/a.md": "https://x.org/drafts/2/handbook/x/a.md",
        "x/b.md": "https://x.org/drafts/2/handbook/x/b.md",
    }
    assert {key: item.load().url for key, item in listed(main).items()} == {"x/a.md": "https://docs.x.org/x/a.md"}
    for wrong, message in (({"branch": "nowhere"}, "no branch nowhere"), ({"folder": "nowhere"}, "no folder nowhere")):
        with pytest.raises(SourceUnavailable, match=message) as told:
            source(tmp_path, team, **wrong).documents()
        assert told.value.hint


def test_what_is_merged_is_dated_by_its_merge(tmp_path, team):
    """On the day on which it became what the branch says."""
    team.commit(a_md="A.")
    team.git("checkout", "--quiet", "-b", "aside")
    team.commit(b_md="B.")
    team.git("checkout", "--quiet", "main")
    team.commit(a_md="Other.")
    team.day += 1
    team.git("merge", "--quiet", "--no-edit", "aside")

    dates = {key: item.load().date for key, item in listed(source(tmp_path, team)).items()}

    assert dates == {"a.md": day(3), "b.md": day(4)}


def test_a_page_is_cited_and_found_where_its_site_publishes_it(tmp_path, team):
    """Its front matter goes before its generator's habits."""
    team.commit(content__leave_md="A.", content__pay_md="---\nurl: /salary/\n---\nB.")
    there = source(tmp_path, team, template="https://x.org", site="hugo")

    assert [item.load().url for item in there.documents()] == ["https://x.org/leave/", "https://x.org/salary/"]
    assert there.one("https://x.org/salary/", {}).key == "content/pay.md"
    assert there.one("https://x.org/leave/", {}).key == "content/leave.md"
    assert there.one("https://x.org/none/", {}) is None


def test_the_rules_of_folders_hold(tmp_path, team):
    """What is no document is left out; what cannot be read is told."""
    team.commit(a_md="A.", node_modules__c_md="C.", drafts__d_md="D.", e_png="E", f_md="F" * 2000)
    lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 5\n"
    team.commit(g_md=lfs, **{".github__b_md": "B."})

    found = listed(
        source(tmp_path, team, rules=SelectionRules(exclude=("drafts",), ignore=DEFAULT_IGNORE), largest=1000)
    )

    assert sorted(found) == ["a.md", "e.png", "f.md", "g.md"]
    assert {key: item.reason for key, item in found.items() if isinstance(item, Unreadable)} == {
        "e.png": "pictures are not read",
        "f.md": "is larger than 0 MB",
    }
    with pytest.raises(UnreadableDocument, match="Git LFS"):
        found["g.md"].load()


def test_by_age(tmp_path, team):
    """By the last change of each file; one that is old tomorrow is gone tomorrow."""
    team.commit(a_md="A.", b_md="B.")
    team.commit(c_md="C.")
    team.commit(a_md="Other.")

    def keys(at, **kwargs):
        rules = SelectionRules(newest_days=1.5)
        return sorted(listed(source(tmp_path, team, rules=rules, now=lambda: at, **kwargs)))

    assert keys(day(3)) == ["a.md", "c.md"]
    assert keys(day(3) + timedelta(days=1)) == ["a.md"]
    assert keys(day(3), depth=1) == ["a.md", "b.md", "c.md"]


def test_a_short_history_tells_no_date_that_it_does_not_know(tmp_path, team):
    """All that lies before its first commit looks as if that had made it."""
    team.commit(a_md="A.")
    team.commit(b_md="B.")
    team.commit(c_md="C.")

    found = listed(GitSource(mirrored(tmp_path, f"{team.path}/.git", depth=2), RepositoryScope()))

    shallow = (next((tmp_path / "home").glob("*/shallow"))).read_text().split()
    assert len(shallow) == 1
    assert {key: item.load().date for key, item in found.items()} == {"a.md": None, "b.md": None, "c.md": day(3)}


def test_links_and_submodules_are_not_followed(tmp_path, team):
    """A link may lead anywhere, and a submodule to any server."""
    team.commit(a_md="A.")
    (team.path / "b.md").symlink_to("/etc/passwd")
    (team.path / "c").symlink_to("..")
    team.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module.md")
    team.git("add", "b.md", "c")
    team.git("commit", "--quiet", "--message=Links")

    found = listed(source(tmp_path, team, rules=SelectionRules(include=("*.md",))))

    assert {key: item.reason for key, item in found.items() if isinstance(item, Unreadable)} == {
        "b.md": "is a symbolic link, which may lead anywhere: include the file itself",
        "module.md": "is a submodule: add its repository as a separate corpus",
    }
    assert isinstance(found["a.md"], ChangedDocument)


def test_names_that_are_no_text_and_paths_that_lead_out(tmp_path, team):
    """A tree may hold what no checkout would take: its files are read, and nothing is written anywhere."""
    blob = team.git("hash-object", "-w", "--stdin", content=b"Text.")
    inner = team.git("mktree", "-z", content=f"100644 blob {blob}\tx.md\0".encode())
    names = [b"caf\xe9.md", b"line\nbreak.md", b"-rf.md", "Bu\u0308ro.md".encode(), "Büro.md".encode()]
    lines = [b"100644 blob " + blob.encode() + b"\t" + name + b"\0" for name in names]
    lines += [b"040000 tree " + inner.encode() + b"\t..\0"]
    tree = team.git("mktree", "-z", content=b"".join(lines))
    team.git("update-ref", "refs/heads/main", team.git("commit-tree", tree, "-m", "Odd"))

    items = list(source(tmp_path, team).documents())

    found = [item.key for item in items if isinstance(item, ChangedDocument)]
    assert sorted(found) == ["-rf.md", "Büro.md", "caf\ufffd.md", "line\nbreak.md"]
    assert [item.key for item in items if isinstance(item, Unreadable)] == ["Büro.md"]
    assert all(item.load().title for item in items if isinstance(item, ChangedDocument))


def test_one_document(tmp_path, team):
    """By its address or its path, as it stands now."""
    commit = team.commit(a_md="A.", b_md="B.")
    there = source(tmp_path, team, template="https://x.org/{commit}/{path}")

    by_path, by_address = there.one("a.md", {}), there.one(f"https://x.org/{commit}/a.md", {})

    assert (by_path.key, by_address.key) == ("a.md", "a.md")
    assert by_path.load().date == day(1)
    assert by_path.fingerprint == listed(there)["a.md"].fingerprint
    team.commit(a_md=None)
    assert there.one("a.md", {"a.md": "known"}) == DeletedDocument("a.md")
    assert there.one("a.md", {}) is None


def test_a_mirror_that_is_broken_is_made_again(tmp_path, team):
    """As is one whose making, or whose fetching, was killed."""
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


def test_nothing_is_fetched_where_nothing_changed(tmp_path, team):
    """The server is asked once where the branch stands."""
    team.commit(a_md="A.")
    bare = team.path / ".git"
    with served(bare.parent) as (address, seen):
        list(GitSource(mirrored(tmp_path, f"{address}/.git"), RepositoryScope()).documents())
        before = len(seen)
        list(GitSource(mirrored(tmp_path, f"{address}/.git"), RepositoryScope()).documents())

    assert len(seen) - before == 2  # its capabilities, and its branches


def test_a_token_lets_us_in_and_is_written_nowhere(tmp_path, team):
    """Neither in the mirror, nor in what a process is started with, nor in any message."""
    token = "s3cret-t0ken-0123456789"
    team.commit(a_md="A.")
    with served(team.path, login=f"x-access-token:{token}") as (address, seen):
        mirror = mirrored(tmp_path, f"{address}/.git", token=token)
        assert list(listed(GitSource(mirror, RepositoryScope()))) == ["a.md"]
        wanted = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        assert seen[-1]["Authorization"] == f"Basic {wanted}"
        with pytest.raises(SourceUnavailable, match="denies access") as told:
            list(
                GitSource(mirrored(tmp_path, f"{address}/.git", token=f"{token}-wrong"), RepositoryScope()).documents()
            )

    kept = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert token.encode() not in kept
    assert wanted.encode() not in kept
    assert token not in f"{told.value} {told.value.hint} {mirror.git._remote!r}"


def test_a_token_follows_no_redirect(tmp_path, team):
    """Its server may send it to another one's."""
    team.commit(a_md="A.")
    with served(team.path) as (other, taken), served(team.path, redirect=other) as (address, _):
        with pytest.raises(SourceUnavailable, match="cannot be fetched"):
            list(GitSource(mirrored(tmp_path, f"{address}/.git", token="s3cret"), RepositoryScope()).documents())
        assert not taken
        assert list(listed(GitSource(mirrored(tmp_path, f"{address}/.git"), RepositoryScope()))) == ["a.md"]
        assert all("Authorization" not in headers for headers in taken)


def test_git_sees_no_settings_and_runs_no_hooks(tmp_path, team):
    """Neither its user's, nor the machine's, nor those of whoever started us."""
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


def test_a_folder_of_another_user_can_be_read(tmp_path, team):
    """The settings name it; git by itself would not trust it."""
    if os.geteuid():
        pytest.skip("only root can give files to somebody else")
    team.commit(a_md="A.")
    for path in [team.path, *team.path.rglob("*")]:
        os.chown(path, 12345, 12345, follow_symlinks=False)

    assert list(listed(source(tmp_path, team))) == ["a.md"]


@pytest.mark.parametrize(
    ("environment", "message"), [({"PATH": "/nowhere"}, "git program is not installed"), ({}, "There is no repository")]
)
def test_what_is_missing_is_told_plainly(tmp_path, environment, message):
    """The program, or the repository."""
    there = GitSource(
        mirrored(tmp_path, "/nowhere/at/all", environment={**os.environ, **environment}), RepositoryScope()
    )

    with pytest.raises(SourceUnavailable, match=message) as told:
        there.documents()
    assert "\n" not in str(told.value)
    assert told.value.hint


def test_a_git_that_is_too_old_is_told(tmp_path):
    """It could not be kept from its user's settings."""
    old = tmp_path / "bin/git"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho git version 2.30.2\n")
    old.chmod(0o700)

    with pytest.raises(SourceUnavailable, match=r"too old \(git version 2.30.2\)"):
        GitSource(mirrored(tmp_path, "/x", environment={"PATH": str(old.parent)}), RepositoryScope()).documents()


def test_stopping_ends_what_git_does(tmp_path, team):
    """And nothing begins after it."""
    team.commit(a_md="A.", b_md="B.")
    there = source(tmp_path, team)
    items = there.documents().items
    next(items)

    there.stop()

    with pytest.raises(SourceUnavailable, match="was stopped"):
        [item.load() for item in items]
    with pytest.raises(SourceUnavailable, match="was stopped"):
        there.documents()


def test_two_readers_of_one_mirror_wait_for_each_other(tmp_path, team):
    """Their fetching would hinder each other."""
    team.commit(a_md="A.")
    one, other = source(tmp_path, team), source(tmp_path, team)

    assert list(listed(one)) == list(listed(other)) == ["a.md"]
    assert len([path for path in Path(tmp_path / "home").iterdir() if path.is_dir()]) == 1
