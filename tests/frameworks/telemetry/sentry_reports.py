import sentry_sdk
from _ask import ask

sentry_sdk.init("http://key@127.0.0.1:9/1", traces_sample_rate=1.0, shutdown_timeout=1)
with sentry_sdk.start_transaction(name="run"):
    print(ask("ants"))
sentry_sdk.capture_message("half way")
print(ask("bees"))
