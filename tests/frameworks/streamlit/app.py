from streamlit.testing.v1 import AppTest


def page():
    import streamlit
    from openai import OpenAI

    if topic := streamlit.chat_input("About what?"):
        asked = [{"role": "user", "content": f"Say something about {topic}"}]
        answer = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked)
        streamlit.session_state.setdefault("said", []).append(answer.choices[0].message.content)
    for text in streamlit.session_state.get("said", []):
        streamlit.chat_message("assistant").write(text)


app = AppTest.from_function(page, default_timeout=60).run()
for topic in ("ants", "bees"):
    app.chat_input[0].set_value(topic).run()
for message in app.chat_message:
    print(message.markdown[0].value)
