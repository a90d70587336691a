"""SQS by moto's server on 127.0.0.1, in a thread."""

import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

import botocore.session
import requests
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

REGION = "eu-central-1"


class _SilentHandler(MotoRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print no line per request."""


class QueueServer:
    """The server with one queue. A message that is not deleted becomes visible again after a second."""

    def __init__(self) -> None:
        self.refuse_all_with = ""
        """An error to answer every request with, or empty."""
        self.refused = 0
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True, request_handler=_SilentHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.uri = f"http://127.0.0.1:{self._server.server_port}"
        requests.post(f"{self.uri}/moto-api/reset", timeout=10).raise_for_status()
        self._client = botocore.session.get_session().create_client(
            "sqs",
            region_name=REGION,
            endpoint_url=self.uri,
            aws_access_key_id="of-the-test",
            aws_secret_access_key="secret-of-the-test",
        )
        self.make_queue()

    def make_queue(self) -> None:
        """Create the queue, always under the same URL."""
        made = self._client.create_queue(QueueName="landing", Attributes={"VisibilityTimeout": "1"})
        self.url = str(made["QueueUrl"])

    def delete_queue(self) -> None:
        self._client.delete_queue(QueueUrl=self.url)

    def send(self, *messages: str) -> None:
        for message in messages:
            self._client.send_message(QueueUrl=self.url, MessageBody=message)

    def messages(self) -> int:
        """Return the number of messages in the queue, received or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        held = self._client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return sum(map(int, held.values()))

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self.refuse_all_with:
            self.refused += 1
            start_response("403 FORBIDDEN", [("Content-Type", "application/x-amz-json-1.0")])
            return [json.dumps({"__type": self.refuse_all_with, "message": "as the test says"}).encode()]
        served: Iterable[bytes] = self._moto(environ, start_response)
        return served
