import yaml
from minisweagent.agents.default import DefaultAgent
from minisweagent.config import builtin_config_dir
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

settings = yaml.safe_load((builtin_config_dir / "default.yaml").read_text())
model = LitellmModel(
    model_name="openai/gpt-4o-mini",
    cost_tracking="ignore_errors",
    **{k: v for k, v in settings.get("model", {}).items() if k != "model_name"},
)
agent = DefaultAgent(model, LocalEnvironment(**settings.get("environment", {})), **settings["agent"])
print(agent.run("Count the words of a file"))
