"""The response of a policy whose seconds are published: it is always right."""

from brctl.model.simulation import Book
from brctl.simulate.chance import exponential, unit
from brctl.simulate.policies import StartKind
from brctl.simulate.symptoms import Kind
from brctl.simulate.trace import DrawnFault
from brctl.simulate.world import World

ATTEMPTS_LIMIT = 100


def see(world: World, kind: Kind, seconds: float) -> None:
    """Until it is seen; a job that is slow trains on meanwhile, but not as it should."""
    world.spend(Book.DEGRADED if kind is Kind.SLOW else Book.DETECT, seconds)


def start_again(world: World, fault: DrawnFault, replaced: int, attempt: int = 0) -> None:
    """Start until a start does not fail by itself; what the source leaves unexplained as well."""
    fleet, near = world.fleet, world.policy.near
    for again in range(ATTEMPTS_LIMIT):
        world.start(replaced if again == 0 else 0, near=near)
        if unit(world.trace.seed, "start", fault.number, attempt, again) >= fleet.restart_fails:
            break
    if attempt == 0 and world.policy.start is not StartKind.ORACLE:
        world.spend(Book.LOAD, fleet.times.unexplained_s)


def by_people(world: World, fault: DrawnFault) -> None:
    """A person is called, looks and finds it."""
    world.count("pages")
    mean_s = world.fleet.people.mend_s
    world.spend(Book.WAIT_HUMAN, exponential(mean_s, world.trace.seed, "person", fault.number))


class Published:
    """Sees, finds and replaces as the row of its policy says.

    As in the paper (Table 4) whatever is no change of code ends with a node replaced, and where no
    node was bad that is a healthy one.
    """

    def recover(self, world: World, fault: DrawnFault) -> None:
        policy = world.policy
        see(world, fault.kind, policy.seen_s[fault.kind])
        if fault.kind in policy.by_hand:
            by_people(world, fault)
        else:
            world.spend(Book.LOCATE, policy.found_s[fault.kind])
        taken = fault.culprits
        if not taken and fault.kind is not Kind.MANUAL:
            taken = (int(unit(world.trace.seed, "taken", fault.number) * world.fleet.nodes),)
        world.evict(taken, fault.culprits)
        start_again(world, fault, len(taken))
