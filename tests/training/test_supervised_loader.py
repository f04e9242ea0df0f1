"""A loader whose process is killed gives the same batches as one that was left alone."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from traceback import format_exception
from types import SimpleNamespace

import pytest

from brctl.model.fault import FaultClass
from brctl.training.loader_process import digest_of_pickle
from brctl.training.supervised_loader import LoaderError, PositionError, SupervisedLoader
from tests.evidence.logs.test_signatures import classify
from tests.timeouts import TIMEOUT_S
from tests.training.mixed_source import ForgetfulSource, MixedSource, loss_of

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
    loader = start(_Large, silent_after_s=0.2)
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
