"""Answers of built-in Spark jobs, sealed with a key that only the worker and that job know.

An answer is a file in the job's folder. The key is made for one job and handed to it in its specification, which only
the owner of the worker can read. What a stranger writes there is refused.
"""

import hashlib
import hmac
import secrets

from pydantic import ValidationError

from sluice.contracts.spark_jobs import JobAnswer, SealedAnswer
from sluice.errors import JobFailed


def new_answer_key() -> str:
    """Return a key for the answer of one job."""
    return secrets.token_hex(32)


def seal_answer(answer: JobAnswer, key: str) -> str:
    """Return an answer and its seal, as the text of the job's answer file."""
    text = answer.model_dump_json()
    return SealedAnswer(answer=text, seal=_seal(text, key)).model_dump_json()


def open_answer(text: str, key: str) -> JobAnswer:
    """Return the answer in the text of an answer file.

    Raises:
        JobFailed: the job of this key did not write it.
    """
    try:
        sealed = SealedAnswer.model_validate_json(text)
    except ValidationError:
        sealed = SealedAnswer(answer="", seal="")
    if not key or not hmac.compare_digest(sealed.seal.encode(), _seal(sealed.answer, key).encode()):
        raise JobFailed("the answer of the Spark job was not written by it: its seal does not fit")
    return JobAnswer.model_validate_json(sealed.answer)


def _seal(text: str, key: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
