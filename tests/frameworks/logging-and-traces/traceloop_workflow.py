from _ask import ask
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import task, workflow

Traceloop.init(app_name="agent", exporter=InMemorySpanExporter(), disable_batch=True, telemetry_enabled=False)


@task(name="one")
def one(topic):
    return ask(f"Say something about {topic}")


@workflow(name="all")
def everything():
    return ask("Sum up " + "; ".join(map(one, ["ants", "bees"])))


print(everything())
