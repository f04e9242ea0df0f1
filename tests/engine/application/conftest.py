"""What tests of watchers share."""

import pytest

from brctl.library.checks import usable_checks
from brctl.model.sweeps.check import Check
from brctl.watch.rules import ROUNDS


@pytest.fixture(scope="module")
def checks() -> dict[str, Check]:
    wanted = {name for names in ROUNDS.values() for name in names}
    return {name: check for name, check in usable_checks()[0].items() if name in wanted}
