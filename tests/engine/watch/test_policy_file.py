"""A policy is read strictly, and one that cannot be read allows nothing but observing."""

from pathlib import Path

import pytest

from brctl.engine.watch.policy_file import load_watch_policy, policy_or_observe
from brctl.model.errors import ConfigError
from brctl.model.fault import FaultClass
from brctl.model.watch.policy import Breaker, WatchMode, WatchPolicy

HEAD = "apiVersion: brctl.dev/v1\nkind: WatchPolicy\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "watch.yaml"
    path.write_text(HEAD + text)
    path.chmod(0o600)
    return path


def test_a_policy_says_modes_limits_and_freezes(tmp_path: Path) -> None:
    policy = load_watch_policy(
        written(
            tmp_path,
            "mode: propose\nrules: {gpu: act}\nclasses: {user-code: observe}\nfreeze: [summer]\n"
            "limits: {breaker: [{within: 5m, share: 2.5%}], spares_kept: 0, quiet: 2h}\n",
        )
    )
    assert policy.mode_of("gpu", FaultClass.GPU_LOST) is WatchMode.ACT
    assert policy.mode_of("gpu", FaultClass.USER_CODE) is WatchMode.OBSERVE
    assert policy.mode_of("no-step", FaultClass.HANG_MISMATCH) is WatchMode.PROPOSE
    assert policy.limits.breakers == (Breaker(300.0, 0.025, 1),)
    assert (policy.limits.spares_kept, policy.limits.quiet_s) == (0, 7200.0)
    assert policy.freezes == ("summer",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("moed: act\n", "watch.yaml:3: unknown key 'moed'; did you mean 'mode'?"),
        ("mode: acct\n", "watch.yaml:3: 'mode': unknown 'acct'; did you mean 'act'?"),
        ("rules:\n  gpus: act\n", "watch.yaml:4: unknown key 'gpus' in rules; did you mean 'gpu'?"),
        ("classes: {gpu-loss: act}\n", "did you mean 'gpu-lost'?"),
        ("limits: {spares_kept: -1}\n", "'spares_kept' must not be below 0"),
        ("limits: {breaker: [{within: 5m, share: 2}]}\n", "'share' must be text"),
        ("limits: {breaker: [{within: 5m, share: 200%}]}\n", "write a percentage of the fleet"),
        ("mode: [act\n", "watch.yaml"),
    ],
)
def test_a_mistake_names_its_line_and_the_nearest_word(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_watch_policy(path)
    assert problem in str(caught.value)
    observing = policy_or_observe(path)
    assert observing.mode_of("gpu", FaultClass.GPU_LOST) is WatchMode.OBSERVE
    assert problem in observing.problem


def test_a_policy_that_others_may_write_is_not_obeyed(tmp_path: Path) -> None:
    path = written(tmp_path, "mode: act\n")
    path.chmod(0o666)
    assert policy_or_observe(path).problem


def test_a_policy_that_is_not_there_observes_and_says_so(tmp_path: Path) -> None:
    assert "cannot be read" in policy_or_observe(tmp_path / "none.yaml").problem


def test_without_breakers_the_built_in_ones_stand(tmp_path: Path) -> None:
    policy = load_watch_policy(written(tmp_path, "limits: {breaker: []}\n"))
    assert policy.limits.breakers == WatchPolicy().limits.breakers
