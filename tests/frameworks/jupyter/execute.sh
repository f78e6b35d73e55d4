cat > ants.ipynb <<'END'
{"cells": [{"cell_type": "code", "id": "one", "execution_count": null, "metadata": {}, "outputs": [], "source": [
"from openai import OpenAI\n",
"asked = [{'role': 'user', 'content': 'Say something about ants'}]\n",
"print(OpenAI().chat.completions.create(model='gpt-4o-mini', messages=asked).choices[0].message.content)"]}],
"metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}, "nbformat": 4, "nbformat_minor": 5}
END
jupyter execute --inplace ants.ipynb && python -c "import json; print(json.load(open('ants.ipynb'))['cells'][0]['outputs'][0]['text'])"
