from _ask import ask
from langfuse import Langfuse, observe

langfuse = Langfuse(public_key="pk-lf-1", secret_key="sk-lf-1", host="http://127.0.0.1:9", timeout=1)


@observe()
def run(topic):
    return ask(topic)


print(run("ants"))
print(run("bees"))
langfuse.flush()
