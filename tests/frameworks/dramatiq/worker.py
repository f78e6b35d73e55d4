import dramatiq
from dramatiq.brokers.stub import StubBroker
from dramatiq.results import Results
from dramatiq.results.backends import StubBackend
from openai import OpenAI

broker = StubBroker()
broker.add_middleware(Results(backend=StubBackend()))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def ask(topic):
    asked = [{"role": "user", "content": f"Say something about {topic}"}]
    answer = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked)
    return answer.choices[0].message.content


worker = dramatiq.Worker(broker, worker_threads=4)
worker.start()
messages = [ask.send(topic) for topic in ("ants", "bees", "cats", "dogs", "eels")]
for message in messages:
    print(message.get_result(block=True, timeout=60_000))
worker.stop()
broker.close()
