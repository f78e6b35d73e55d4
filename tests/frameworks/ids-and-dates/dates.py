import datetime as dt
import email.utils
import time

import arrow
import pendulum
from _ask import ask
from babel.dates import format_date, format_datetime

zoned = dt.datetime.now().astimezone()
now = zoned.replace(tzinfo=None)
forms = [
    f"{now:%A, %B %d, %Y}",
    now.strftime("%x %X %p"),
    zoned.isoformat(timespec="seconds"),
    email.utils.format_datetime(zoned),
    time.strftime("%H:%M %Z", time.localtime(time.time())),
    time.strftime("day %j of %Y, week %W"),
    format_datetime(now, locale="de_DE", format="full"),
    format_date(now, locale="fr_FR", format="long"),
    format_date(now, locale="ja_JP", format="full"),
    arrow.utcnow().format("dddd, D MMMM YYYY HH:mm:ss ZZ"),
    arrow.now().isoformat(),
    pendulum.now().to_day_datetime_string(),
    str(now.date() + dt.timedelta(days=1)),
]
for form in forms:
    ask(f"The time is {form}")
print(len(forms))
