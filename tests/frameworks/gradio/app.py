import gradio
from gradio_client import Client
from openai import OpenAI


def ask(topic):
    asked = [{"role": "user", "content": f"Say something about {topic}"}]
    answer = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked)
    return answer.choices[0].message.content


app = gradio.Interface(ask, "text", "text", api_name="ask", concurrency_limit=4)
_, address, _ = app.launch(prevent_thread_lock=True, quiet=True, share=False)
client = Client(address, verbose=False)
jobs = [client.submit(topic, api_name="/ask") for topic in ("ants", "bees", "cats", "dogs")]
for job in jobs:
    print(job.result())
app.close()
