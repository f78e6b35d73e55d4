import logfire
from openai import OpenAI

logfire.configure(send_to_logfire=False, console=False)
client = OpenAI()
logfire.instrument_openai(client)
with logfire.span("agent"):
    for topic in ["ants", "bees"]:
        with logfire.span("step {topic}", topic=topic):
            asked = [{"role": "user", "content": f"Say something about {topic}"}]
            made = client.chat.completions.create(model="gpt-4o-mini", messages=asked)
            print(made.choices[0].message.content)
