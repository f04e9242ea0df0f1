"""The published figures come out again."""

from brctl.simulate.paper import tables


def test_every_figure_of_the_paper_holds() -> None:
    """With the runs of `brctl simulate paper`; the bench makes a thousand."""
    found = tables(60, 7)
    assert [figure.name for figure in found.figures if not figure.holds] == []
    assert len(found.figures) == 59
    assert {f.published for f in found.figures} >= {10.87, 5.36, 5.19, 11.04, 97.0, 99.5}
