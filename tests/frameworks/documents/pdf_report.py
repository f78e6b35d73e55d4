import base64
import io

from _ask import TOPICS, ask
from anthropic import Anthropic
from fpdf import FPDF
from pypdf import PdfReader, PdfWriter
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen import canvas

out = io.BytesIO()
page = canvas.Canvas(out, pagesize=A4)
for number, topic in enumerate(TOPICS[:3]):
    page.drawString(72, 700 - 20 * number, ask(f"Say something about {topic}"))
page.save()
with open("report.pdf", "wb") as file:
    file.write(out.getvalue())
other = FPDF()
other.add_page()
other.set_font("helvetica", size=12)
other.cell(text="Summary")
data = bytes(other.output())
merged = PdfWriter()
for each in (out, io.BytesIO(data)):
    merged.append(PdfReader(each))
final = io.BytesIO()
merged.write(final)
text = "\n".join(page.extract_text() for page in PdfReader(final).pages)
info = PdfReader(out).metadata
print(ask(f"{text} made {info.creation_date_raw}")[:20])
pdf = {
    "type": "document",
    "source": {
        "type": "base64",
        "media_type": "application/pdf",
        "data": base64.b64encode(out.getvalue()).decode(),
    },
}
made = Anthropic().messages.create(
    model="claude-sonnet-4-0",
    max_tokens=99,
    messages=[{"role": "user", "content": [pdf, {"type": "text", "text": "Sum up"}]}],
)
print(made.content[0].text)
