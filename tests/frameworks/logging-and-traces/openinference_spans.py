import asyncio

from _ask import TOPICS, ask_async
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
OpenAIInstrumentor().instrument(tracer_provider=provider)


async def main():
    said = await asyncio.gather(*(ask_async(f"Say something about {topic}") for topic in TOPICS))
    print(await ask_async("Sum up " + "; ".join(said)), len(spans.get_finished_spans()))


asyncio.run(main())
