"""A loader whose process is killed gives the same batches as one that was left alone."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from multiprocessing import active_children
from pathlib import Path
from traceback import format_exception
from types import SimpleNamespace

import pytest

from brctl.model.fault import FaultClass
from brctl.training.loader_positions import PlaceError, read_place, save_position
from brctl.training.loader_process import digest_of_pickle
from brctl.training.mixed_source import MixedSource
from brctl.training.supervised_loader import LoaderError, PositionError, SupervisedLoader
from tests.evidence.logs.test_signatures import classify
from tests.timeouts import TIMEOUT_S
from tests.training.mixed_source import ForgetfulSource, loss_of

BATCHES = 60


def undisturbed() -> list[list[int]]:
    source = MixedSource(batches=BATCHES)
    return [next(source) for _ in range(BATCHES)]


Start = Callable[..., SupervisedLoader]


@pytest.fixture
def start() -> Iterator[Start]:
    """Loaders whose processes are gone afterwards."""
    loaders: list[SupervisedLoader] = []

    def begin(make: Callable[[], object] = MixedSource, **options: object) -> SupervisedLoader:
        options = {"silent_after_s": TIMEOUT_S, **options}
        loaders.append(SupervisedLoader(make, **options))  # type: ignore[arg-type]  # by name
        return loaders[-1]

    yield begin
    for loader in loaders:
        loader.close()


def short() -> MixedSource:
    return MixedSource(batches=BATCHES)


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("policy", ["respawn", "shadow"])
def test_a_worker_killed_at_any_step_costs_no_sample(start: Start, policy: str, every: int) -> None:
    """Bit by bit the same, none twice, none left out, whatever the worker had made ahead."""
    rng = random.Random(f"{policy}{every}")
    kills = set(rng.sample(range(BATCHES - 5), 5))
    loader, given = start(short, on_loader=policy, snapshot_every=every), []
    for number, batch in enumerate(loader):
        given.append(batch)
        if number in kills:
            os.kill(loader.worker_pids()[0], signal.SIGKILL)
    assert loss_of(given) == loss_of(undisturbed())  # type: ignore[arg-type]  # lists of ids
    assert given == undisturbed()
    assert 1 <= len(loader.fail_overs) <= 5
    assert all(1 <= f.replayed <= every or f.at == 0 for f in loader.fail_overs)


def test_a_stopped_worker_is_replaced_like_a_dead_one(start: Start) -> None:
    loader = start(short, silent_after_s=0.2, prefetch=1)
    given = [next(loader)]
    os.kill(loader.worker_pids()[0], signal.SIGSTOP)
    while not loader.fail_overs:
        given.append(next(loader))
    loader.silent_after_s = TIMEOUT_S  # what took over is well, on a host that may be busy
    given += list(loader)
    assert given == undisturbed()
    assert "sent nothing for 0.2 s" in loader.fail_overs[0].why


class _Large:
    """Batches larger than any pipe."""

    def __init__(self) -> None:
        self._made = 0

    def __next__(self) -> bytes:
        self._made += 1
        return bytes([self._made]) * (3 << 20)

    def state_dict(self) -> int:
        return self._made

    def load_state_dict(self, state: int) -> None:
        self._made = state


def test_a_worker_that_stops_in_the_middle_of_a_batch_is_replaced(start: Start) -> None:
    """Its first bytes are there, and no more will come."""
    loader = start(_Large, silent_after_s=2.0)
    given = [next(loader)]
    assert loader._maker._items.poll(TIMEOUT_S)
    os.kill(loader.worker_pids()[0], signal.SIGSTOP)
    given += [next(loader)]
    loader.silent_after_s = TIMEOUT_S
    given += [next(loader)]
    assert [batch[0] for batch in given] == [1, 2, 3]  # type: ignore[index]  # bytes
    assert {len(batch) for batch in given} == {3 << 20}  # type: ignore[arg-type]  # bytes
    assert len(loader.fail_overs) == 1


def test_a_process_that_does_not_die_when_killed_keeps_nobody_waiting(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In state D a kill waits for the kernel; here the kill itself does nothing."""
    monkeypatch.setattr("brctl.training.supervised_loader.END_WITHIN_S", 0.01)
    loader = start(short, silent_after_s=0.2, prefetch=1)
    given = [next(loader)]
    stuck = loader._maker._process
    with monkeypatch.context() as patch:
        patch.setattr(stuck, "kill", lambda: None)
        os.kill(stuck.pid, signal.SIGSTOP)
        try:
            while not loader.fail_overs:
                given.append(next(loader))
        finally:
            os.kill(stuck.pid, signal.SIGKILL)
            stuck.join()
    loader.silent_after_s = TIMEOUT_S
    assert given + list(loader) == undisturbed()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_to_all_processes_of_a_job_is_the_ranks_own(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: signal.Signals
) -> None:
    """A scheduler's notice: a handler that saves a checkpoint must not run in every worker."""
    ran = tmp_path / "ran"
    before = signal.signal(number, lambda *_: ran.touch())
    try:
        loader = start(short, prefetch=1)
        given = [next(loader)]
    finally:
        signal.signal(number, before)
    for pid in loader.worker_pids():
        os.kill(pid, number)
    assert given + list(loader) == undisturbed()
    assert (loader.fail_overs, ran.exists()) == ([], False)


def test_a_loader_that_is_dropped_ends_its_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One an epoch, and nobody calls close."""
    monkeypatch.setattr("brctl.training.supervised_loader.END_WITHIN_S", TIMEOUT_S)
    loader = SupervisedLoader(MixedSource, on_loader="shadow", silent_after_s=TIMEOUT_S)
    next(loader)
    pids = set(loader.worker_pids())
    del loader
    assert pids & {process.pid for process in active_children()} == set()


def test_a_script_that_does_not_close_its_loader_ends_all_the_same() -> None:
    """Its worker heeds no SIGTERM, which multiprocessing would send and wait."""
    script = (
        "from brctl.training.mixed_source import MixedSource\n"
        "from brctl.training.supervised_loader import SupervisedLoader\n"
        "loader = SupervisedLoader(MixedSource, on_loader='shadow')\n"
        "next(loader)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0


def test_a_worker_uses_no_threads_that_only_the_rank_has(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product in a fork would wait for the rank's threads for ever."""
    threads: list[int] = []
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(set_num_threads=threads.append))

    class Threads(MixedSource):
        def __next__(self) -> list[int]:
            return list(threads)

    assert next(start(Threads)) == [1]
    assert threads == []


def test_a_shadow_that_dies_as_well_ends_the_rank_and_says_so(start: Start) -> None:
    loader = start(short, on_loader="shadow", prefetch=1)
    next(loader)
    for pid in loader.worker_pids():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(LoaderError, match="as well: the rank ends, restart it") as ended:
        list(loader)
    said = classify(*"".join(format_exception(ended.value)).splitlines())
    assert said.fault is FaultClass.DATA_LOADER


def test_a_policy_of_failing_replaces_nothing(start: Start) -> None:
    loader = start(short, on_loader="fail", prefetch=1)
    os.kill(loader.worker_pids()[0], signal.SIGKILL)
    with pytest.raises(LoaderError, match="on_loader=fail"):
        list(loader)
    with pytest.raises(ValueError, match="fork, spawn: only a child of the rank"):
        start(short, start_method="forkserver")
    with pytest.raises(ValueError, match="respawn, shadow, fail"):
        start(on_loader="pray")


def test_a_resumed_loader_goes_on_where_the_checkpoint_was(start: Start) -> None:
    first = start(short)
    given = list(islice(first, 20))
    state = first.state_dict()
    assert given + list(start(short, state=state)) == undisturbed()


def test_a_source_that_forgets_its_state_is_found_at_the_first_batch(start: Start) -> None:
    """50 batches given again would bend the loss, and nothing would say so."""
    source, ledger = MixedSource(batches=BATCHES), {}
    for position in range(1, 51):
        ledger[position] = digest_of_pickle(next(source))
    first = start(short)
    list(islice(first, 51))
    with pytest.raises(PositionError, match="but batch 1: 50 batches would be repeated"):
        start(ForgetfulSource, state=first.state_dict(), given_before=ledger)


def test_a_fail_over_whose_position_is_not_proved_is_refused(start: Start) -> None:
    loader = start(ForgetfulSource, prefetch=1)
    list(islice(loader, 10))
    os.kill(loader.worker_pids()[0], signal.SIGKILL)
    with pytest.raises(PositionError, match="cannot be proved; go back a checkpoint"):
        list(islice(loader, 10))


@pytest.mark.parametrize("state", [{}, {"at": True, "position": 0, "digests": {}}, {"at": 3}])
def test_a_state_of_something_else_is_refused(start: Start, state: dict[str, object]) -> None:
    with pytest.raises(PositionError, match="none of this loader's"):
        start(short, state=state)


class _Raises(MixedSource):
    def __next__(self) -> list[int]:
        raise KeyError("shard-0007.tar")


def test_what_the_source_raises_is_told_and_not_tried_again(start: Start) -> None:
    with pytest.raises(LoaderError, match=r"KeyError: 'shard-0007.tar'"):
        list(start(_Raises))


def test_checkpoints_say_where_every_loader_was(start: Start, tmp_path: Path) -> None:
    """A rank's file that is missing, or a position that did not grow, makes it no checkpoint."""
    problem = import_module("checks._checkpoints.loader_positions").loader_problem
    saves = [SimpleNamespace(step=n, name=f"step-{n}", path=tmp_path / f"step-{n}") for n in (1, 2)]
    loaders = [start(short), start(short)]
    for save in saves:
        next(loaders[0])
        for rank, loader in enumerate(loaders):
            loader.save_position(save.path, rank, of=2)
    assert problem(saves, saves[0]) == ""
    assert problem(saves, saves[1]) == (
        "the loader of rank 1 is at batch 0, and was at 0 in step-1: it did not grow"
    )
    next(loaders[1])
    loaders[1].save_position(saves[1].path, 1, of=2)
    assert problem(saves, saves[1]) == ""
    (saves[1].path / "loader" / "rank-00001.json").unlink()
    assert problem(saves, saves[1]) == ("loader/rank-00001.json is missing (1 of 2 loader states)")
    (saves[1].path / "loader" / "rank-00001.json").write_text('{"position": true, "of": 2}')
    assert "position is no count" in problem(saves, saves[1])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((400, 400), "2 of 2 loader states, 800 samples = 100 x 8"),
        ((400, 388), "2 of 2 loader states, 788 samples and not 100 x 8: a restart from it"
                     " repeats 12"),
        ((400, 404), "2 of 2 loader states, 804 samples and not 100 x 8: a restart from it"
                     " skips 4"),
        ((400, True), "2 of 2 loader states"),
        ((400, None), "2 of 2 loader states"),
    ],
)  # fmt: skip
def test_the_samples_of_all_loaders_are_those_of_the_steps_or_it_is_said(
    tmp_path: Path, given: tuple[int, int], said: str
) -> None:
    note = import_module("checks._checkpoints.loader_positions").loader_note
    for rank, samples in enumerate(given):
        place = {"position": 100, "samples": samples, "global_batch": 8, "since_step": 0}
        save_position(tmp_path, rank, 2, place)
    assert note(SimpleNamespace(step=100, path=tmp_path)) == said
    (tmp_path / "loader" / "rank-00001.json").unlink()
    assert note(SimpleNamespace(step=100, path=tmp_path)) == ""


Told = dict[str, int]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        # The checkpoint before had another global batch: the restart from it began with this one.
        ({"samples": 2400}, "2,400 samples = 100 x 8 + 100 x 16"),
        ({"samples": 2399}, "2,399 samples and not 100 x 8 + 100 x 16, the global batch changed"
                            " between checkpoints (1,600 to 2,400 samples)"),
        ({"samples": 2404}, "2,404 samples and not 100 x 8 + 100 x 16, the global batch changed"
                            " between checkpoints (1,600 to 2,400 samples): a restart from it"
                            " skips 4"),
        ({"samples": 1596}, "1,596 samples and not 100 x 8 + 100 x 16, the global batch changed"
                            " between checkpoints (1,600 to 2,400 samples): a restart from it"
                            " repeats 4"),
        ({"samples": 1600, "since_step": 100}, "1,600 samples = 100 x 16 since step 100"),
        ({"samples": 1584, "since_step": 100}, "1,584 samples and not 100 x 16 since step 100:"
                                               " a restart from it repeats 16"),
        ({"samples": 1600, "since_step": 300}, ""),
        ({"samples": 1600, "since_step": -1}, ""),
    ],
)  # fmt: skip
def test_samples_are_counted_right_where_the_global_batch_changed(
    tmp_path: Path, told: Told, said: str
) -> None:
    """More ranks are no loader that skips; what a change may explain is no warning."""
    note = import_module("checks._checkpoints.loader_positions").loader_note
    rows: dict[int, Told] = {
        50: {"samples": 400, "global_batch": 8}, 100: {"samples": 800, "global_batch": 8},
        200: {**told, "global_batch": 16},
    }  # fmt: skip
    saves = [SimpleNamespace(step=n, name=f"step-{n}", path=tmp_path / f"step-{n}") for n in rows]
    for save in saves:
        save_position(save.path, 0, 1, {"position": save.step, **rows[save.step]})
    head = "1 of 1 loader states"
    assert note(saves[1], saves) == f"{head}, 800 samples = 100 x 8"
    assert note(saves[2], saves) == (f"{head}, {said}" if said else head)


def test_steps_before_the_oldest_checkpoint_kept_had_the_batch_that_its_sum_says(
    tmp_path: Path,
) -> None:
    """A batch of 8 until step 5000 and 16 since; checkpoints from before 9000 are rotated away."""
    note = import_module("checks._checkpoints.loader_positions").loader_note
    sums = {9000: 104_000, 9500: 112_000, 10_000: 119_990}
    saves = [SimpleNamespace(step=n, path=tmp_path / str(n)) for n in sums]
    for save in saves:
        place = {"position": save.step, "samples": sums[save.step], "global_batch": 16}
        save_position(save.path, 0, 1, place)
    read: dict[object, object] = {}
    assert [note(save, saves, read).partition(", ")[2] for save in saves] == [
        "104,000 samples and not 9000 x 16: the global batch of earlier steps is not known",
        "112,000 samples = 104,000 by step 9000 + 500 x 16",
        "119,990 samples and not 104,000 by step 9000 + 1000 x 16: a restart from it repeats 10",
    ]
    for save in saves[:2]:
        (save.path / "loader" / "rank-00000.json").unlink()
    assert "repeats 10" in note(saves[2], saves, read)


def test_a_state_of_any_size_lies_beside_its_position(tmp_path: Path) -> None:
    """Half a megabyte of shuffle buffer; a state that is gone, cut or another is no whole one."""
    problem = import_module("checks._checkpoints.loader_positions").loader_problem
    save = SimpleNamespace(step=1, name="step-1", path=tmp_path)
    state = {"buffer": list(range(100_000)), "at": 7}
    for rank in range(2):
        save_position(tmp_path, rank, 2, {"position": 7, "state": state})
    place = read_place(tmp_path, 1, 2)
    assert place is not None
    assert (place["state"], place["position"]) == (state, 7)
    assert problem([save], save, verify=True) == ""
    kept = tmp_path / "loader" / "rank-00001.state.json"
    kept.write_bytes(content := kept.read_bytes().replace(b"99999", b"99998"))
    assert problem([save], save) == ""
    assert problem([save], save, verify=True) == (
        "loader/rank-00001.state.json is not what was saved: its digest differs"
    )
    with pytest.raises(PlaceError, match=r"rank-00001\.state\.json is not what was saved with it"):
        read_place(tmp_path, 1, 2)
    kept.write_bytes(content[:9])
    assert problem([save], save) == f"loader/rank-00001.state.json: 9 bytes of {len(content)}"
    kept.unlink()
    assert problem([save], save).startswith("loader/rank-00001.state.json: FileNotFoundError")


def test_a_position_larger_than_what_is_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match=r"at most 65536 are read: .* belongs into `state`"):
        save_position(tmp_path, 0, 1, {"position": 7, "source": "x" * 70_000})


def ending(batches: int) -> Callable[[], MixedSource]:
    return lambda: MixedSource(batches=batches)


@pytest.mark.parametrize("lengths", [(9, 9, 9), (9, 4, 7)])
def test_a_checkpoint_of_each_epoch_is_whole_though_its_loader_begins_anew(
    start: Start, tmp_path: Path, lengths: tuple[int, ...]
) -> None:
    """The last batch of unshuffled data is the same in every epoch; a smaller number is said."""
    positions = import_module("checks._checkpoints.loader_positions")
    saves = []
    for number, length in enumerate(lengths):
        loader = start(ending(length))
        list(loader)
        path = tmp_path / f"epoch-{number}"
        loader.save_position(path, 0, of=1)
        saves.append(SimpleNamespace(step=number, name=path.name, path=path))
    assert [positions.loader_problem(saves, save) for save in saves] == ["", "", ""]
    expected = "epoch-1: the loader of rank 0 is at batch 4, and was at 9 in epoch-0"
    assert positions.loader_remark(saves, saves[1]) == (expected if lengths[1] == 4 else "")
    assert positions.loader_remark(saves, saves[2]) == ""


def test_a_resumed_loader_that_stands_still_is_the_same_loader(
    start: Start, tmp_path: Path
) -> None:
    problem = import_module("checks._checkpoints.loader_positions").loader_problem
    saves = [SimpleNamespace(step=n, name=f"step-{n}", path=tmp_path / f"step-{n}") for n in (1, 2)]
    first = start(short)
    list(islice(first, 5))
    first.save_position(saves[0].path, 0, of=1)
    second = start(short, state=first.state_dict())
    second.save_position(saves[1].path, 0, of=1)
    assert "at batch 5, and was at 5 in step-1: it did not grow" in problem(saves, saves[1])
    next(second)
    second.save_position(saves[1].path, 0, of=1)
    assert problem(saves, saves[1]) == ""
