import json
import os

import boto3
from _ask import ask
from botocore.config import Config

address = os.environ["ANTHROPIC_BASE_URL"]
client = boto3.client(
    "bedrock-runtime",
    region_name="us-east-1",
    endpoint_url=address,
    aws_access_key_id="AKIAX",
    aws_secret_access_key="y",
    config=Config(retries={"max_attempts": 2}, read_timeout=5),
)
for topic in ("ants", "bees"):
    try:
        print(
            client.invoke_model(
                modelId="anthropic.claude-3-haiku-20240307-v1:0",
                body=json.dumps(
                    {
                        "anthropic_version": "bedrock-2023-05-31",
                        "max_tokens": 50,
                        "messages": [{"role": "user", "content": topic}],
                    }
                ),
            )["body"].read()[:40]
        )
    except Exception as error:
        print(type(error).__name__, str(error)[:60])
print(ask("Hello"))
