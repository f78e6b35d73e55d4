export MSWEA_CONFIGURED=true MSWEA_COST_TRACKING=ignore_errors MSWEA_SILENT_STARTUP=1
exec mini --model openai/gpt-4o-mini --task "Count the words of a file" --yolo --exit-immediately --output out.json
