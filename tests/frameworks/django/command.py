import asyncio

import django
from _ask import ask, ask_async
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}},
    SECRET_KEY="x",
)
django.setup()
from django.contrib.auth.models import User  # noqa: E402 — there is none before the set-up


class Command(BaseCommand):
    def handle(self, *args, **options):
        for topic in ("ants", "bees"):
            User.objects.create_user(topic, password=ask(f"Say something about {topic}"))
        self.stdout.write(ask("Sum up: " + ", ".join(u.username for u in User.objects.all())))
        self.stdout.write(async_to_sync(self.more)())

    async def more(self):
        names = await sync_to_async(lambda: [u.username for u in User.objects.all()])()
        said = await asyncio.gather(*(ask_async(f"Say more about {name}") for name in names))
        return await ask_async("Sum up: " + "; ".join(said))


call_command("migrate", verbosity=0)
call_command(Command())
