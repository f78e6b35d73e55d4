git init --quiet . && git config user.email ada@example.com && git config user.name Ada
printf 'print("hello")\n' > hello.py
git add hello.py && git commit --quiet --message "First"
aider --model openai/gpt-4o-mini --yes-always --no-check-update --no-show-model-warnings --no-pretty --message "Make it say goodbye" hello.py
