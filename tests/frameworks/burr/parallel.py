from burr.core import ApplicationBuilder, State, action
from burr.core.parallelism import MapStates
from openai import OpenAI


@action(reads=["topic"], writes=["answer"])
def ask(state: State) -> State:
    asked = [{"role": "user", "content": f"Say something about {state['topic']}"}]
    answer = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked)
    return state.update(answer=answer.choices[0].message.content)


class AskAll(MapStates):
    def action(self, state, inputs):
        return ask

    def states(self, state, context, inputs):
        for topic in state["topics"]:
            yield state.update(topic=topic)

    def reduce(self, state, results):
        return state.update(answers=[each["answer"] for each in results])

    @property
    def reads(self):
        return ["topics"]

    @property
    def writes(self):
        return ["answers"]


app = (
    ApplicationBuilder()
    .with_actions(ask_all=AskAll())
    .with_transitions()
    .with_state(topics=["ants", "bees", "cats", "dogs"])
    .with_entrypoint("ask_all")
    .build()
)
_, _, state = app.run(halt_after=["ask_all"])
print(state["answers"])
