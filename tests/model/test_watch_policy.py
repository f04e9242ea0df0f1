"""What a policy allows at most."""

from brctl.model.fault import FaultClass
from brctl.model.watch.policy import WatchMode, WatchPolicy


def test_the_most_a_policy_allows_may_stand_at_a_rule_or_a_class() -> None:
    assert WatchPolicy().most is WatchMode.OBSERVE
    assert WatchPolicy(rules={"gpu": WatchMode.PROPOSE}).most is WatchMode.PROPOSE
    assert WatchPolicy(classes={FaultClass.GPU_LOST: WatchMode.ACT}).most is WatchMode.ACT
