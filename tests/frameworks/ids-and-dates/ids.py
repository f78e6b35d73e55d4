import secrets
import uuid

import nanoid
import shortuuid
import uuid6
from ksuid import Ksuid
from openai import OpenAI
from ulid import ULID

made = {
    "ulid": str(ULID()),
    "nanoid": nanoid.generate(),
    "nanoid10": nanoid.generate(size=10),
    "shortuuid": shortuuid.uuid(),
    "short8": shortuuid.ShortUUID().random(length=8),
    "uuid7": str(uuid6.uuid7()),
    "uuid6": str(uuid6.uuid6()),
    "uuid1": str(uuid.uuid1()),
    "ksuid": str(Ksuid()),
    "token": secrets.token_urlsafe(12),
    "hex": secrets.token_hex(4),
    "int": str(secrets.randbelow(10**6)),
}
client = OpenAI()
for name, value in made.items():
    asked = [{"role": "system", "content": f"Session {value}"}, {"role": "user", "content": f"My {name}?"}]
    said = client.chat.completions.create(
        model="gpt-4o-mini", messages=asked, extra_headers={"x-request-id": str(uuid.uuid4())}
    )
    print(name, said.choices[0].message.content)
