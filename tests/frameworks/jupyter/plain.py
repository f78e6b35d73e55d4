from _notebook import run

run(
    "from openai import OpenAI\nclient = OpenAI()",
    "def ask(topic):\n"
    "    asked = [{'role': 'user', 'content': f'Say something about {topic}'}]\n"
    "    answer = client.chat.completions.create(model='gpt-4o-mini', messages=asked)\n"
    "    return answer.choices[0].message.content",
    "print(ask('ants'))",
    "print(ask('bees'))",
)
