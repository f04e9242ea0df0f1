"""Ask the nodes for the digest of a release: nobody starts ranks from copies that differ."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brctl.actions.context import Sweeps
from brctl.actions.contract import ActionFailed, FailureKind
from brctl.model.command import Outcome
from brctl.model.jobs.code import JobCode
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold
from brctl.model.sweeps.report import NodeReport

CHECK = "job.code"
DIGEST = "job.code.digest"
AT_ONCE = 64
SHOWN = 12
"""Digits of a digest that people see."""


@dataclass(frozen=True, slots=True)
class CodeCopies:
    """What the nodes say of their copies of one release.

    Attributes:
        digests: Digest by node.
        silent: Why there is none, by node.
        lost: Nodes of `silent` that did not answer at all, so that asking again may help.
    """

    version: str
    digests: Mapping[str, str]
    silent: Mapping[str, str]
    lost: frozenset[str]

    def of(self, node: str) -> "CodeCopies":
        """What one node says."""
        return replace(
            self,
            digests={n: d for n, d in self.digests.items() if n == node},
            silent={n: w for n, w in self.silent.items() if n == node},
        )

    def problem(self, expected: str) -> str:
        """One sentence about the copies that are not as expected; "" when all are."""
        problems = [*self._differing(expected), *self._missing()]
        return f"code {self.version}: " + "; ".join(problems) if problems else ""

    def usual(self) -> str:
        """The digest of most nodes; "" when none has more than half of the votes."""
        digest, votes = (
            Counter(self.digests.values()).most_common(1)[0] if self.digests else ("", 0)
        )
        return digest if 2 * votes > len(self.digests) else ""

    def _differing(self, expected: str) -> list[str]:
        wanted = expected or self.usual()
        by_digest: dict[str, list[str]] = {}
        for node, digest in self.digests.items():
            if digest != wanted:
                by_digest.setdefault(digest, []).append(node)
        whose = "recorded" if expected else "that of most nodes"
        instead = f", not {wanted[:SHOWN]} ({whose})" if wanted else ""
        return [f"{fold(names)} has {d[:SHOWN]}{instead}" for d, names in by_digest.items()]

    def _missing(self) -> list[str]:
        by_reason: dict[str, list[str]] = {}
        for node, why in self.silent.items():
            by_reason.setdefault(why, []).append(node)
        return [f"{fold(names)}: {why}" for why, names in by_reason.items()]


async def copies_of(sweeps: Sweeps, job: Job, code: JobCode, nodes: Sequence[str]) -> CodeCopies:
    """Ask nodes for their copies of a release."""
    about, gate = replace(job, code=code), asyncio.Semaphore(AT_ONCE)

    async def ask(node: str) -> NodeReport:
        async with gate:
            return await sweeps.ask(node, CHECK, about, {})

    reports = await asyncio.gather(*(ask(node) for node in nodes))
    digests = {report.node: found for report in reports if (found := _digest(report))}
    silent = {r.node: _why(r) for r in reports if r.node not in digests}
    lost = frozenset(r.node for r in reports if r.outcome is not Outcome.ANSWERED)
    return CodeCopies(code.version, digests, silent, lost)


async def must_agree(sweeps: Sweeps, job: Job, code: JobCode, nodes: Sequence[str]) -> str:
    """The digest all nodes have, which is the recorded one where there is one.

    Raises:
        ActionFailed: Names the nodes whose copy differs or cannot be read.
    """
    copies = await copies_of(sweeps, job, code, nodes)
    problem = copies.problem(code.digest)
    if problem:
        raise ActionFailed(problem, FailureKind.TRANSPORT if copies.lost else FailureKind.OTHER)
    return next(iter(copies.digests.values()))


def _digest(report: NodeReport) -> str:
    return next((m.value for m in report.named(DIGEST) if isinstance(m.value, str)), "")


def _why(report: NodeReport) -> str:
    if report.outcome is not Outcome.ANSWERED:
        return report.detail or f"no answer ({report.outcome.value})"
    return report.notes[0] if report.notes else "no digest"
