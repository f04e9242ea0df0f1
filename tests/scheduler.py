"""Which worker runs which tests: xdist's groups, at the worker before it has to wait for them.

xdist keeps a worker one test ahead. It does not begin a test before it knows the one after, so it
waits for the controller before each; and for each report the controller counts again everything it
ever gave to that worker, which with thousands of tests is most of what it does.
"""

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

LEAST_AHEAD = 2
"""The test that runs, and the one it must know to begin: what xdist keeps at a worker."""

MOST_AHEAD = 8
"""More gain nothing (16: a tenth), and what waits behind a long test waits for that test."""

_SHARES = 4
"""What is left is handed out in so many rounds at least, so that all workers end together."""


class EarlyScheduling(LoadGroupScheduling):
    """As xdist's `loadgroup`, with more tests at each worker and no memory of finished ones."""

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Forget a group once all of it has run, and give the worker more."""
        name = self.registered_collections[node][item_index]
        group = self._split_scope(name)
        given = self.assigned_work[node]
        given[group][name] = True
        if all(given[group].values()):
            del given[group]
        self._reschedule(node)

    def _reschedule(self, node: WorkerController) -> None:
        if node.shutting_down:
            return
        while self.workqueue and self._pending_of(self.assigned_work[node]) < self._ahead():
            self._assign_work_unit(node)
        if not self.workqueue:
            node.shutdown()

    def _ahead(self) -> int:
        share = len(self.workqueue) // (_SHARES * len(self.nodes))
        return max(LEAST_AHEAD, min(MOST_AHEAD, share))
