"""SQS by moto's server on 127.0.0.1, in a thread."""

import botocore.session

from tests.harness.moto_server import REGION, FaultyMotoServer


class QueueServer(FaultyMotoServer):
    """The server with one queue. A message that is not deleted becomes visible again after a second."""

    refusal_status = "403 FORBIDDEN"

    def __init__(self) -> None:
        super().__init__()
        self.reset()
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
