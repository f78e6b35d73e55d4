from llama_index.core.llms import ChatMessage
from llama_index.llms.openai import OpenAI

print(OpenAI(model="gpt-4o-mini").complete("Say something about rivers"))
print(OpenAI(model="gpt-4o-mini").chat([ChatMessage(content="Say something about hills")]))
