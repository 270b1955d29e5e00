"""The exception that every function of the package raises for what its input causes."""

from __future__ import annotations


class ExportError(Exception):
    """What went wrong, where, and what to do about it: ``str(error)`` says all of it."""

    message: str
    """What went wrong, alone."""
    code: str
    """One of a short list: ``"corrupt-file"``, ``"not-found"``, ``"unsupported-op"`` and the like."""
    node: str | None
    """The node of the graph that it is about, as ``"%add_3 = aten.add.Tensor(…)"``."""
    location: str | None
    """Where in the model that node comes from: module path, class, file and line."""
    hint: str
    """What to do; may be empty."""
    details: str
    """The whole report as the command line prints it."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        node: str | None = None,
        location: str | None = None,
        hint: str = "",
        details: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.node = node
        self.location = location
        self.hint = hint
        lines = [message, f"  from {location}" if location else "", f"  hint: {hint}" if hint else ""]
        self.details = details or "\n".join(line for line in lines if line)

    def __str__(self) -> str:
        return self.details.rstrip("\n")
