"""What goes wrong between here and the Hub, in words that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ExportError
from .contents import printable

AGAIN = "run this again: what the Hub has by then is not sent again"
LOGIN = "run hf auth login with a token that may write, or set HF_TOKEN"


@contextmanager
def explained(repository: str, revision: str) -> Iterator[None]:
    """What huggingface_hub raises as an `ExportError`. No message holds a token or an upload's address."""
    from huggingface_hub import constants, errors

    where = f"{repository} at {constants.ENDPOINT}"
    try:
        yield
    except ExportError:
        raise
    except errors.OfflineModeIsEnabled as error:
        raise ExportError(f"nothing was sent to {where}: offline", code="io", hint="unset HF_HUB_OFFLINE") from error
    except errors.HFValidationError as error:
        raise ExportError(
            f"{repository} is no name on the Hub: {printable(str(error))}", code="invalid-input", hint="give ORG/NAME"
        ) from error
    except Exception as error:
        text = printable(f"{type(error).__name__}: {error}".rstrip(": "))
        if isinstance(error, ValueError) and "README.md" in text:  # the answer of another request than the commit
            raise ExportError(
                f"the Hub does not take the card of {where}: {text}", code="invalid-input", hint="correct README.md"
            ) from error
        answer = _answer(error)
        if answer is not None:
            raise _of_answer(answer, where, repository, revision) from error
        # The HTTP library differs between versions of huggingface_hub; all of them name what failed.
        raise ExportError(
            f"the push to {where} broke off: {text}",
            code="io",
            hint=f"check the network (HF_ENDPOINT names another Hub) and {AGAIN}",
        ) from error


def _answer(error: BaseException) -> Exception | None:
    """The error with the Hub's answer, which others may be about."""
    from huggingface_hub import errors

    at: BaseException | None = error
    while at is not None:
        if isinstance(at, errors.HfHubHTTPError):
            return at
        at = at.__cause__ or at.__context__
    return None


def _of_answer(error: Exception, where: str, repository: str, revision: str) -> ExportError:
    from huggingface_hub import errors

    status = getattr(getattr(error, "response", None), "status_code", 0)
    said = printable(str(getattr(error, "server_message", None) or ""), 300)
    said = f" ({status}{': ' if said else ''}{said})"
    organisation = repository.split("/")[0]
    if isinstance(error, errors.RevisionNotFoundError):
        return ExportError(
            f"{where} has no branch {revision}{said}", code="not-found", hint="--revision is a branch, not a commit or a tag"
        )
    if status == 401:
        return ExportError(f"the Hub does not take the token for {where}{said}", code="io", hint=LOGIN)
    if status == 403:
        return ExportError(
            f"the token may not write to {where}{said}",
            code="io",
            hint=f"use a token that may write to {organisation}, or push to a name of your own",
        )
    if status == 404:
        return ExportError(
            f"the Hub finds nothing to write to for {where}{said}",
            code="not-found",
            hint=f"check that {organisation} exists and that the token may write to it",
        )
    if status in (409, 412):
        return ExportError(
            f"{where} was changed by someone else during the push, so nothing was committed{said}",
            code="io",
            hint="run this again: it compares with what is there now, and sends no file twice",
        )
    if status == 400:
        return ExportError(
            f"the Hub refuses what was asked of {where}, branch {revision}{said}",
            code="invalid-input",
            hint="the Hub's own words are above; --dry-run shows what is sent",
        )
    return ExportError(f"the Hub answered with an error for {where}{said}", code="io", hint=f"wait a little and {AGAIN}")
