from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage

model = OpenAIChatGenerator(model="gpt-4o-mini", streaming_callback=lambda piece: print(repr(piece.content)))
print(model.run([ChatMessage.from_user("Say something about rivers")])["replies"][0].text)
