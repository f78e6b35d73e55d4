from concurrent.futures import ThreadPoolExecutor

from _ask import TOPICS, ask
from opentelemetry import trace
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(spans))
trace.set_tracer_provider(provider)
HTTPXClientInstrumentor().instrument()
with trace.get_tracer(__name__).start_as_current_span("agent") as span, ThreadPoolExecutor(3) as pool:
    said = list(pool.map(ask, [f"Say something about {topic}" for topic in TOPICS]))
    number = format(span.get_span_context().trace_id, "032x")
    ask(f"Trace {number}. Sum up " + "; ".join(said))
provider.force_flush()
print(said, len(spans.get_finished_spans()))
