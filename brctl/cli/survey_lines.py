"""A survey as the lines that views print."""

from typing import TYPE_CHECKING

from brctl.view.fleet.nodes import NodeLine

if TYPE_CHECKING:
    from brctl.engine.sweeps.survey import Survey


def known_lines(known: "Survey") -> list[NodeLine]:
    """One line a node, in the order of the survey."""
    return [
        NodeLine(
            node=node,
            health=known.health.get(node.name),
            cordon=(cordon.owner, cordon.reason) if cordon else None,
            job=known.job_of.get(node.name),
        )
        for node in known.nodes
        for cordon in [known.cordons.get(node.name)]
    ]
