from crewai import LLM
from crewai.flow.flow import Flow, listen, start


class Trip(Flow):
    @start()
    def choose(self):
        return LLM(model="openai/gpt-4o-mini").call("Say something about rivers")

    @listen(choose)
    def left(self, chosen):
        return LLM(model="openai/gpt-4o-mini").call(f"Make it longer: {chosen}")

    @listen(choose)
    def right(self, chosen):
        return LLM(model="openai/gpt-4o-mini").call(f"Make it shorter: {chosen}")


flow = Trip()
flow.kickoff()
print(sorted(map(str, flow.method_outputs)))
