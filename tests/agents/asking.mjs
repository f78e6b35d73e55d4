// Asks the model at ANTHROPIC_BASE_URL each of its arguments, all at once, and reads the streams.
const ask = async (question) => {
  const answer = await fetch(`${process.env.ANTHROPIC_BASE_URL}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "m",
      max_tokens: 9,
      stream: true,
      messages: [{ role: "user", content: question }],
    }),
  });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  const deltas = (await answer.text()).match(/"text": ?"[^"]+"/g) ?? [];
  return deltas.map((delta) => JSON.parse(`{${delta}}`).text).join("");
};
console.log((await Promise.all(process.argv.slice(2).map(ask))).join("\n"));
