import datetime as dt
import uuid

from _ask import ask
from sqlalchemy import DateTime, String, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Message(Base):
    __tablename__ = "messages"
    id: Mapped[str] = mapped_column(String, primary_key=True, default=lambda: str(uuid.uuid4()))
    made: Mapped[dt.datetime] = mapped_column(DateTime, default=func.now())
    text: Mapped[str]


engine = create_engine("sqlite:///history.db")
Base.metadata.create_all(engine)
with Session(engine) as session:
    for topic in ["ants", "bees", "cats"]:
        session.add(Message(text=ask(f"Say something about {topic}")))
        session.commit()
    rows = session.scalars(select(Message).order_by(Message.made, Message.text)).all()
    first = rows[0]
    print(
        ask(f"Message {first.id} of {first.made:%Y-%m-%d %H:%M:%S}: " + "; ".join(row.text for row in rows))
    )
