"""Errors as OpenAI's API gives them: a status, and a JSON object that says what is wrong."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """A request that gets an error for an answer.

    Attributes:
        status: of HTTP.
        text: what is wrong, with the value, the rule and the remedy.
        kind: OpenAI's class of error, such as `invalid_request_error`.
        param: the parameter at fault.
        code: OpenAI's name of the error.
    """

    def __init__(
        self,
        text: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.kind = kind
        self.param = param
        self.code = code

    def body(self) -> dict[str, Any]:
        """The JSON object."""
        error = {
            "message": self.text,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        }
        return {"error": error}


def unavailable(text: str) -> ApiError:
    """Return the error of a server that cannot answer."""
    return ApiError(text, status=503, kind="server_error", code="engine_unavailable")


def wrong(param: str, expected: str, got: object) -> ApiError:
    """Return the error of a parameter that has the wrong value."""
    shown = repr(got)
    if len(shown) > 100:
        shown = f"{shown[:48]}...{shown[-48:]}"
    return ApiError(f"{param}: expected {expected}, got {shown}", param=param)
