"""What `library.trusted_files` says ends with the command that mends it."""

_COMMANDS = ("chmod ", "chown ")


def text_and_command(problem: str) -> tuple[str, str]:
    """What is wrong, and what to type; "" for a problem that no command mends."""
    text, _, command = problem.rpartition("; ")
    return (text, command) if command.startswith(_COMMANDS) else (problem, "")
