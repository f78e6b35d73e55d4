import instructor
from _person import Person
from openai import OpenAI

client = instructor.from_openai(OpenAI())
asked = [{"role": "user", "content": "Ada is 36 and lives in Rome"}]
for part in client.chat.completions.create_partial(
    model="gpt-4o-mini", messages=asked, response_model=Person
):
    print(part)
