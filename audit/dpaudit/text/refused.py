"""The exception that ends a command before its first run."""


class Refused(Exception):
    """Wrong usage; each of the `problems` is a message for the user."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
