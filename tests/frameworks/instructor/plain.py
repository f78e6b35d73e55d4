import instructor
from _person import Person

for model in ("openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5"):
    client = instructor.from_provider(model)
    print(
        client.create(
            messages=[{"role": "user", "content": "Ada is 36 and lives in Paris"}],
            response_model=Person,
            max_tokens=200,
        )
    )
