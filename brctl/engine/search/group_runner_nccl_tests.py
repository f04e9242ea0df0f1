"""Group tests with NVIDIA's nccl-tests, launched by srun or mpirun from this machine.

One launch is one repetition: the programs check data over all iterations together and print one
count of wrong values, so repetitions inside a set-up cannot be counted apart.
"""

import asyncio
import re
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from brctl.engine.search.group_runner import RoundMeasurement, RoundOrder, nothing_measured
from brctl.library.programs.child_start import end_process, start_process
from brctl.model.errors import UnavailableError
from brctl.model.localisation import GroupResult

PROGRAMS = {
    "all_reduce": "all_reduce_perf",
    "all_gather": "all_gather_perf",
    "all_to_all": "alltoall_perf",
}
_OUTPUT_LIMIT = 1 << 20
_SLOWEST_FACTOR, _LEAST_PATIENCE_S = 4.0, 30.0
# size count type redop root | out-of-place: time algbw busbw #wrong | in-place: the same
_ROW = re.compile(
    r"^\s*\d+\s+\d+\s+\w+(?:\s+\w+)?\s+-?\d+"
    r"\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+(\d+|N/A)"
    r"\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s+(\d+|N/A)\s*$"
)


@dataclass(slots=True)
class NcclTestsRunner:
    """Runs all groups of a round at once, each as one launch.

    Attributes:
        per_node: Ranks on each node, one per GPU.
        launcher: "srun" or "mpirun".
    """

    per_node: int
    launcher: str
    limit: int = 64

    @property
    def name(self) -> str:
        return "nccl-tests"

    async def run(self, order: RoundOrder) -> RoundMeasurement:
        """Launch every group; what hangs is cut when the others have long been done."""
        program = PROGRAMS[order.op]
        if self.launcher == "mpirun" and shutil.which(program) is None:
            return nothing_measured(order, f"{program} is not in the PATH of this machine")
        gate = asyncio.Semaphore(self.limit)
        took: list[float] = []
        tasks = [
            asyncio.create_task(self._group(order, group, gate, took, len(order.groups)))
            for group in order.groups
        ]
        try:
            pairs = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return RoundMeasurement(
            tuple(result for result, _ in pairs), notes=tuple(note for _, note in pairs if note)
        )

    async def _group(
        self,
        order: RoundOrder,
        group: Sequence[str],
        gate: asyncio.Semaphore,
        took: list[float],
        groups: int,
    ) -> tuple[GroupResult, str]:
        async with gate:
            loop = asyncio.get_running_loop()
            began = loop.time()
            launch = asyncio.create_task(launch_program(self.argv(order, group)))
            try:
                while not launch.done():
                    limit = order.deadline_s
                    if 2 * len(took) >= groups:
                        usual = _SLOWEST_FACTOR * statistics.median(took)
                        limit = min(limit, max(_LEAST_PATIENCE_S, usual))
                    if loop.time() - began > limit:
                        return GroupResult(1, 1, None, silent=True), f"{group[0]}...: cut"
                    await asyncio.wait({launch}, timeout=0.2)
            finally:
                launch.cancel()
                await asyncio.gather(launch, return_exceptions=True)
            status, text = launch.result()
            result, note = read_output(status, text)
            if result.failed == 0:
                took.append(loop.time() - began)
            return result, note

    def argv(self, order: RoundOrder, group: Sequence[str]) -> tuple[str, ...]:
        """The command of one group; data is checked (`-c 1`) and warmed up once."""
        size = str(order.size_bytes)
        test = (
            PROGRAMS[order.op], "-b", size, "-e", size, "-n", str(order.reps), "-w", "1",
            "-c", "1", "-g", "1",
        )  # fmt: skip
        nodes, ranks = len(group), len(group) * self.per_node
        if self.launcher == "srun":
            return (
                "srun", "--overlap", "-N", str(nodes), "-n", str(ranks), "-w", ",".join(group),
                *test,
            )  # fmt: skip
        hosts = ",".join(f"{name}:{self.per_node}" for name in group)
        return ("mpirun", "-np", str(ranks), "--host", hosts, *test)

    async def close(self) -> None:
        """Nothing outlives a round."""


async def launch_program(argv: Sequence[str]) -> tuple[int | None, str]:
    """Run one launch to its end; it is killed with all it started when cancelled."""
    try:
        process = await start_process(
            asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        )
    except OSError as exc:
        return None, f"{argv[0]}: {exc.strerror}"
    kept = bytearray()
    try:
        while process.stdout is not None and (chunk := await process.stdout.read(1 << 16)):
            kept += chunk
            del kept[:-_OUTPUT_LIMIT]
        status = await process.wait()
    finally:
        await end_process(process)
    return status, kept.decode(errors="replace")


def read_output(status: int | None, text: str) -> tuple[GroupResult, str]:
    """What nccl-tests printed: wrong values fail, a launch without a result is not measured.

    A program that started and then died took part in a collective that failed.
    """
    rows = [match for line in text.splitlines() if (match := _ROW.match(line))]
    last = text.strip().splitlines()[-1][:200] if text.strip() else "no output"
    if status is None or (not rows and "# nThread" not in text and "#  Rank" not in text):
        return GroupResult(1, None), f"{last}; not measured"
    if not rows:
        return GroupResult(1, 1, None), last
    wrong = sum(int(match[group]) for match in rows for group in (2, 4) if match[group] != "N/A")
    speed = statistics.median(float(match[group]) for match in rows for group in (1, 3))
    failed = int(status != 0 or wrong > 0)
    return GroupResult(1, failed, speed if speed > 0 else None), last if failed else ""


def nccl_tests_runner(per_node: int, scheduler: str, limit: int) -> NcclTestsRunner:
    """The runner with the launcher this site has.

    Raises:
        UnavailableError: There is neither srun on a Slurm site nor mpirun.
    """
    order = ("srun", "mpirun") if scheduler == "slurm" else ("mpirun", "srun")
    for launcher in order:
        if shutil.which(launcher):
            return NcclTestsRunner(per_node, launcher, limit)
    raise UnavailableError(
        "nccl-tests needs srun or mpirun on this machine",
        hint="use --runner torch, or exec:COMMAND for a launcher of your own",
    )
