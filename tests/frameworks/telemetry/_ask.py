from openai import OpenAI


def ask(topic):
    asked = [{"role": "user", "content": f"Say something about {topic}"}]
    return OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked).choices[0].message.content
