from _ask import TOPICS, ask
from joblib import Parallel, delayed

if __name__ == "__main__":
    said = Parallel(n_jobs=2)(delayed(ask)(f"Say something about {t}") for t in TOPICS)
    print(said)
    print(ask("Sum up: " + "; ".join(said)))
