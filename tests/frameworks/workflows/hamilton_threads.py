from _ask import TOPICS, ask
from hamilton import ad_hoc_utils, driver
from hamilton.execution import executors
from hamilton.htypes import Collect, Parallelizable


def topic() -> Parallelizable[str]:
    yield from TOPICS


def said(topic: str) -> str:
    return ask(f"Say something about {topic}")


def summed(said: Collect[str]) -> str:
    return ask("Sum up " + "; ".join(said))


mod = ad_hoc_utils.create_temporary_module(topic, said, summed, module_name="flow")
dr = (
    driver.Builder()
    .with_modules(mod)
    .enable_dynamic_execution(allow_experimental_mode=True)
    .with_remote_executor(executors.MultiThreadingExecutor(3))
    .build()
)
print(dr.execute(["summed"]))
