# The clients are other programs, started by the shell: their requests come again in a replay, in any order.
python _main.py 8933 &
server=$!
curl --silent --retry 60 --retry-delay 1 --retry-connrefused -o first.json "http://127.0.0.1:8933/ask?topic=ants"
for topic in bees cats dogs eels; do
  curl --silent -o "$topic.json" "http://127.0.0.1:8933/ask?topic=$topic" &
  clients="$clients $!"
done
wait $clients
kill -INT $server
wait $server
cat first.json bees.json cats.json dogs.json eels.json
