"""What workers tell the app; handlers own the widgets."""

from textual.message import Message

from brctl.tui.session.facts import Facts


class FactsRead(Message):
    """The disk was read."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self.facts = facts


class Busy(Message):
    """Something runs in the background; "" when nothing does any more."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class WorkFailed(Message):
    """A worker could not do what it was asked, in one sentence."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class WorkDone(Message):
    """A worker finished; one sentence, and the view that shows the result."""

    def __init__(self, text: str, view_name: str = "", item: str = "") -> None:
        super().__init__()
        self.text = text
        self.view_name = view_name
        self.item = item
