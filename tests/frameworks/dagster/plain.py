import openai
from dagster import job, op

client = openai.OpenAI()


@op
def ants() -> str:
    answer = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "Tell me of ants"}]
    )
    return answer.choices[0].message.content


@op
def more(said: str) -> str:
    answer = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": f"More than {said}"}]
    )
    return answer.choices[0].message.content


@job
def everything():
    more(ants())


print(everything.execute_in_process().output_for_node("more"))
