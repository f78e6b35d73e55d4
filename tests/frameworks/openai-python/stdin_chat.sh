printf 'Hello on 2026-01-02\nWhat is 7?\nBye\n' | python _chat.py
