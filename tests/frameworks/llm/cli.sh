mkdir -p "$HOME/llm"
export LLM_USER_PATH="$HOME/llm"
cat > "$LLM_USER_PATH/extra-openai-models.yaml" <<END
- model_id: here
  model_name: gpt-4o-mini
  api_base: "$OPENAI_BASE_URL"
END
llm -m here "Say something about rivers" && llm -m here -c "And about hills" && llm -m here --no-stream "And about woods"
