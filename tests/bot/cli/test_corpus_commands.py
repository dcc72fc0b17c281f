"""The commands that tell of corpora and make their indexes again."""

from tests.bot.cli.commands import document, run
from tests.bot.fake_services import FakeServices


def test_reindex_opens_indexes_that_do_not_serve() -> None:
    services = FakeServices()
    printed = document(run("reindex", "--json", services=services))

    assert (printed["passages"], set(printed)) == (12, {"passages", "seconds"})
    assert services.opened == [True]
    assert "Indexed again: 12 passages" in run("reindex", services=services).stdout
