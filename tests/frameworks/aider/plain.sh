printf 'print("hello")\n' > hello.py
exec aider --model openai/gpt-4o-mini --no-git --yes-always --no-check-update --no-show-model-warnings --no-pretty --no-stream --message "Make it say goodbye" hello.py
