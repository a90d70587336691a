"""Answers of built-in Spark jobs, sealed with a key that only the worker and that job know.

An answer is a file in the job's folder. The worker creates a key for each job and passes it in the job's specification,
which only the owner of the worker can read. The worker refuses an answer that anyone else wrote.
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
    """Return the text of the job's answer file: the answer and its seal."""
    text = answer.model_dump_json()
    return SealedAnswer(answer=text, seal=_seal(text, key)).model_dump_json()


def open_answer(text: str, key: str) -> JobAnswer:
    """Return the answer in the text of an answer file.

    Raises:
        JobFailed: the job with this key did not write the answer.
    """
    try:
        sealed = SealedAnswer.model_validate_json(text)
    except ValidationError:
        sealed = SealedAnswer(answer="", seal="")
    if not key or not hmac.compare_digest(sealed.seal.encode(), _seal(sealed.answer, key).encode()):
        raise JobFailed("the answer of the Spark job has a wrong seal: the job did not write it")
    return JobAnswer.model_validate_json(sealed.answer)


def _seal(text: str, key: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
