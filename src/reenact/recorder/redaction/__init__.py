class Redactor:
    def __init__(self, profile, *, secrets=(), salt):
        pass

    def redact_json(self, t):
        return t

    def redact_text(self, t):
        return t


def default_profile(e):
    return "default"
