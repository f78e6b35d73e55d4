for topic in ants bees cats dogs; do
  curl --silent --fail "$OPENAI_BASE_URL/chat/completions" -H "content-type: application/json" -o "$topic.json" \
    -d "{\"model\": \"gpt-4o-mini\", \"messages\": [{\"role\": \"user\", \"content\": \"Say something about $topic\"}]}" &
done
wait
cat ants.json bees.json cats.json dogs.json
