import datetime
import uuid

from _ask import ask
from jinja2 import Environment

text = Environment().from_string(
    "Ticket {{ id }} of {{ now.strftime('%d/%m/%y') }}: say {{ what|join(', ') }}"
)
for topic in ["ants", "bees"]:
    print(
        ask(
            text.render(
                id=uuid.uuid4().hex[:12], now=datetime.datetime.now().astimezone(), what=[topic, "please"]
            )
        )[:20]
    )
