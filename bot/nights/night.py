"""What a night came to, and how it is told: on record, in the log, and to the admins. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.console import Fault
from bot.printing.tables import counted
from bot.progress import spell
from bot.sanitizing import one_line
from ingest.refreshing import RefreshReport

DONE, FAILED = "done", "failed"


@dataclass(frozen=True, slots=True)
class Night:
    """What a night came to."""

    due: datetime
    reports: tuple[RefreshReport, ...]
    faults: Mapping[str, Fault]
    """Why a corpus was not brought up to date, by its name."""

    @property
    def outcome(self) -> str:
        """A word: `done`, or `failed` where a corpus was not brought up to date."""
        return FAILED if self.faults else DONE

    def lines(self) -> Iterator[str]:
        """Tell it, a line a corpus."""
        for report in self.reports:
            yield f"{report.corpus}: {_counts(report)}, in {spell(report.seconds)}{_fault(report)}"
        for corpus, fault in self.faults.items():
            yield _failed(corpus, fault)

    def troubles(self) -> Iterator[str]:
        """Tell what somebody has to look at: what failed, and what else is amiss, such as removals held back."""
        for corpus, fault in self.faults.items():
            yield _failed(corpus, fault)
        for report in self.reports:
            if report.fault:
                yield f"{report.corpus}: brought up to date{_fault(report)}"

    def summary(self) -> str:
        """Tell all of it in one line."""
        done, all_of_it = len(self.reports), len(self.reports) + len(self.faults)
        total = RefreshReport(
            "",
            added=sum(report.added for report in self.reports),
            changed=sum(report.changed for report in self.reports),
            removed=sum(report.removed for report in self.reports),
            failures=tuple(failure for report in self.reports for failure in report.failures),
        )
        which = counted(done, "corpus", "corpora") if done == all_of_it else f"{done} of {all_of_it} corpora"
        seconds = sum(report.seconds for report in self.reports)
        return f"Last night: {which} brought up to date; {_counts(total)}, in {spell(seconds)}."


def _failed(corpus: str, fault: Fault) -> str:
    return f"{corpus}: not brought up to date. {fault.line()}"


def _counts(report: RefreshReport) -> str:
    unread = f", {report.failed:,} could not be read" if report.failed else ""
    return f"{report.added:,} added, {report.changed:,} changed, {report.removed:,} removed{unread}"


def _fault(report: RefreshReport) -> str:
    return f". {one_line(report.fault)}" if report.fault else ""
