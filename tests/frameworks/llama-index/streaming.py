from llama_index.llms.openai import OpenAI

for piece in OpenAI(model="gpt-4o-mini").stream_complete("Say something about rivers"):
    print(repr(piece.delta))
