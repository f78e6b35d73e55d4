from haystack import Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage

pipeline = Pipeline()
pipeline.add_component(
    "prompt", ChatPromptBuilder([ChatMessage.from_user("Say something about {{ topic }}")])
)
pipeline.add_component("model", OpenAIChatGenerator(model="gpt-4o-mini"))
pipeline.connect("prompt.prompt", "model.messages")
print(pipeline.run({"prompt": {"topic": "rivers"}})["model"]["replies"][0].text)
