// Normalized traces of bundles, and the nineteen assertion types of the published format, after docs/assertions.md.
// A judgement is [passed, events]; patterns are searched for with the line anchors of Ruby.
import { Refused, canonical, parse } from "./json.mjs";
import { isObject } from "./schema.mjs";

const ACTORS = {
  message_received: "user",
  tool_call: "agent",
  tool_result: "tool",
  memory_read: "agent",
  memory_write: "agent",
  error: "system",
  final_output: "agent",
};
const FLAGS = [
  "supports_memory_events",
  "supports_scheduler_context",
  "supports_container_metadata",
  "supports_live_run",
];
const ENVELOPE = new Set(["type", "event_id", "ts", "group_id", "session_id", "task_id", "agent_id"]);
const without = (object, names) => Object.fromEntries(Object.entries(object).filter(([name]) => !names.has(name)));

// In microseconds, because given times are finer than milliseconds.
const microseconds = (text) =>
  Date.parse(text.replace(/\.\d+/, "")) * 1000 + Number((/\.(\d+)/.exec(text)?.[1] ?? "").padEnd(6, "0").slice(0, 6));
const written = (micros) => new Date(Math.floor(micros / 1000)).toISOString();

function times(script, startedAt) {
  const given = script.map((step) => (step.ts == null ? null : microseconds(step.ts)));
  const next = given.map((_, i) => given.slice(i).find((moment) => moment !== null) ?? null);
  const first = given.findIndex((moment) => moment !== null);
  let previous = (first < 0 ? microseconds(startedAt) : given[first] - first * 1000) - 1000;
  let text = null;
  return script.map((step, i) => {
    const due = given[i] ?? Math.min(previous + 1000, next[i] ?? Infinity);
    const isFiner = step.ts == null && text !== null && microseconds(written(due)) < previous;
    text = step.ts ?? (isFiner ? text : written(due));
    previous = isFiner ? previous : due;
    return text;
  });
}

export function normalize(bundle, startedAt) {
  const { scenario, script, metrics } = bundle;
  const calls = new Map();
  const clock = times(script, startedAt);
  const events = script.map((step, index) => {
    const of = (name) => step[name] ?? scenario[name] ?? null;
    const event = {
      event_id: step.event_id ?? `evt-${index + 1}`,
      seq: BigInt(index + 1),
      ts: clock[index],
      type: step.type,
      actor: ACTORS[step.type],
      group_id: of("group_id"),
      session_id: of("session_id"),
      task_id: of("task_id"),
      agent_id: step.agent_id ?? "agent-main",
      parent_event_id: (["tool_result", "error"].includes(step.type) && calls.get(step.call_id)) || null,
      data: without(step, ENVELOPE),
    };
    if (step.type === "tool_call") calls.set(step.call_id, event.event_id);
    return event;
  });
  const output = bundle.final_output ?? script.filter((step) => step.type === "final_output").at(-1) ?? {};
  return {
    events,
    scenario: {
      trigger: scenario.trigger,
      ...Object.fromEntries(
        ["group_id", "session_id", "task_id", "scheduler_context"].map((name) => [name, scenario[name] ?? null]),
      ),
    },
    input_messages: bundle.input_messages,
    final_output: { role: output.role ?? "assistant", content: output.content ?? "" },
    capabilities: {
      supports_tool_trace: true,
      supports_replay: true,
      ...Object.fromEntries(FLAGS.map((name) => [name, false])),
      ...bundle.capabilities,
    },
    metrics: {
      timing_ms_total: metrics.timing_ms_total,
      tool_call_count: BigInt(script.filter((step) => step.type === "tool_call").length),
      retry_count: metrics.retry_count ?? 0n,
      token_usage: metrics.token_usage ?? null,
    },
  };
}

// What texts consist of

const BULLET = /^\s*[-*]\s+(\S.*?)\s*$/;
const bullets = (text) =>
  text
    .split("\n")
    .map((line) => BULLET.exec(line)?.[1])
    .filter((bullet) => bullet !== undefined);
const paragraphs = (text) =>
  text
    .split(/\n\s*\n/)
    .map((block) => block.trim())
    .filter(Boolean);
const sentences = (text) => Math.max(1, (text.match(/[.!?](?=\s|$)/g) ?? []).length);
const contains = (text, part, isExact) =>
  isExact ? text.includes(part) : text.toLowerCase().includes(part.toLowerCase());
const search = (pattern, text, isExact = false) => new RegExp(pattern, isExact ? "mu" : "imu").test(text);
const listed = (value) => (value == null ? [] : [value].flat()).map(String);
const strings = (value) =>
  typeof value === "string" ? [value] : typeof value === "object" && value ? Object.values(value).flatMap(strings) : [];
const STOP = new Set(
  `the a an and or but if then than for with without from into onto over under by of on in to at is are was were be been being this that
these those it its they them their there here as not no today latest short exactly useful help helps using used use more less earlier later can will should
after before one two three`.split(/\s+/),
);

function stems(text) {
  const stem = (word) => {
    let short = word.replace(/ies$/, "y");
    if (short.length > 5) short = short.replace(/(ing|ed)$/, "");
    return short.length > 4 ? short.replace(/s$/, "") : short;
  };
  return new Set(
    (text.toLowerCase().match(/[a-z0-9]+/g) ?? []).map(stem).filter((word) => word.length >= 3 && !STOP.has(word)),
  );
}

function units(text) {
  return paragraphs(text).flatMap((block) => {
    const found = [[]];
    let isBullet = false;
    for (const line of block.split("\n")) {
      const bullet = BULLET.exec(line)?.[1];
      if (bullet !== undefined) {
        if (!isBullet && found.at(-1).at(-1)?.trimEnd().endsWith(":")) found.at(-1).pop();
        found.push([bullet]);
      } else if (isBullet && !/^\s/.test(line)) found.push([line]);
      else found.at(-1).push(line);
      isBullet = bullet !== undefined || (isBullet && /^\s/.test(line));
    }
    return found.filter((unit) => unit.length).map((unit) => unit.join("\n"));
  });
}

function urls(text) {
  const closing = { "(": ")", "[": "]", "<": ">", '"': '"', "'": "'", "`": "`" };
  return [...text.matchAll(/https?:\/\/\S+/gi)].map(
    (found) => found[0].split(closing[text[found.index - 1]] ?? "\n")[0],
  );
}

const at = (value, path) =>
  isObject(value) && path in value
    ? value[path]
    : path
        .replace(/^\$\.?/, "")
        .split(/[.[\]]+/)
        .filter(Boolean)
        .reduce((inside, key) => inside?.[key], value);
// Null counts as missing, and so does false that is not a member itself.
const held = (args, key) => {
  const value = at(args, key);
  return value === null || (value === false && !(isObject(args) && key in args)) ? undefined : value;
};
const hasKey = (value, key) =>
  key.startsWith("$") ? ![undefined, false].includes(at(value, key)) : isObject(value) && key in value;
const same = (a, b) => canonical(a) === canonical(b);

// The assertions

const selects = (selector) => (event) =>
  event.type === selector.event_type &&
  (selector.tool ?? event.data.tool) === event.data.tool &&
  (selector.call_id ?? event.data.call_id) === event.data.call_id &&
  (selector.success === undefined || (event.data.success ?? null) === selector.success);
const calls = (trace, tool) =>
  trace.events.filter((event) => event.type === "tool_call" && (tool === undefined || event.data.tool === tool));
const memories = (trace) => trace.events.filter((event) => /^memory_(read|write)$/.test(event.type));
const errors = (trace) => trace.events.filter((event) => event.type === "error");
const outputs = (trace) => trace.events.filter((event) => event.type === "final_output").slice(-1);
const results = (trace, sources) =>
  trace.events.filter(
    ({ type, data }) =>
      type === "tool_result" &&
      data.success === true &&
      (sources == null || [data.tool, data.fixture_id].some((name) => listed(sources).includes(name))),
  );

const SUCCESS_PHRASES = ["sent successfully", "completed successfully", "successfully sent", "all set"];

const TYPES = {
  must_call_tool: (t, p) => [calls(t, p.tool).length >= Number(p.min_calls ?? 1), calls(t, p.tool)],
  must_not_call_tool: (t, p) => [!calls(t, p.tool).length, calls(t, p.tool)],
  tool_call_order(t, p) {
    const [before, after] = [p.before, p.after].map((selector) => t.events.find(selects(selector)));
    return before && after ? [before.seq < after.seq, [before, after]] : [false, []];
  },
  max_tool_calls(t, p) {
    const found = [[p.max, calls(t, p.tool)], [p.max_total, calls(t)]].filter(([limit]) => limit !== undefined);
    const broken = found.find(([limit, made]) => made.length > Number(limit));
    return [!broken, (broken ?? found[0])[1]];
  },
  tool_args_match(t, { tool, match }) {
    const good = calls(t, tool).find(
      ({ data: { args } }) =>
        listed(match.required_keys).every((key) => hasKey(args, key)) &&
        Object.entries(match.args_contains ?? {}).every(([key, wanted]) => {
          const value = held(args, key);
          return (
            value !== undefined &&
            (typeof value === "string" && typeof wanted === "string" ? contains(value, wanted) : same(value, wanted))
          );
        }) &&
        Object.entries(match.regex ?? {}).every(
          ([key, pattern]) => held(args, key) !== undefined && search(pattern, String(held(args, key))),
        ),
    );
    return [good !== undefined, good ? [good] : calls(t, tool)];
  },
  stop_after_success(t, p) {
    const success = t.events.find(selects(p.success_event));
    if (!success) return [false, []];
    const following = t.events.filter(
      (event) =>
        event.seq > success.seq &&
        selects(p.forbid_following)(event) &&
        !listed(p.allowed_following_tools).includes(event.data.tool),
    );
    return [!following.length, [success, ...following]];
  },
  output_contains(t, p) {
    const has = (part) => contains(t.final_output.content, part, p.case_sensitive);
    const [any, all, patterns] = [p.any_of, p.all_of, p.regex].map(listed);
    return [
      any.length + all.length + patterns.length > 0 &&
        (!any.length || any.some(has)) &&
        all.every(has) &&
        patterns.every((one) => search(one, t.final_output.content, p.case_sensitive)),
      [],
    ];
  },
  output_omits: (t, p) => [
    !listed(p.patterns).some((one) =>
      (p.regex ? search : (part, text, isExact) => contains(text, part, isExact))(
        one,
        t.final_output.content,
        p.case_sensitive,
      ),
    ),
    [],
  ],
  output_matches_format(t, p) {
    const text = t.final_output.content;
    if (p.format === "bullet_list") {
      const found = bullets(text);
      return [
        found.length >= Math.max(1, Number(p.min_bullets ?? 1)) &&
          found.length <= Number(p.max_bullets ?? Infinity) &&
          found.every((one) => sentences(one) <= Number(p.max_sentences_per_bullet ?? Infinity)),
        [],
      ];
    }
    if (p.format === "paragraphs")
      return [
        p.exact_paragraphs == null
          ? paragraphs(text).length > 0
          : paragraphs(text).length === Number(p.exact_paragraphs),
        [],
      ];
    const value = parse(text);
    return [listed(p.required_keys).every((key) => hasKey(value, key)), []];
  },
  claims_supported_by_fixtures(t, p) {
    const sources = results(t, p.allowed_sources ?? []);
    const texts = sources.flatMap(({ data }) => strings(data.result));
    const known = new Set(texts.flatMap((text) => [...stems(text)]));
    const isBacked = (unit) => {
      const own = [...stems(unit)];
      return (
        !own.length ||
        own.filter((stem) => known.has(stem)).length >= Math.min(2, Math.max(1, Math.floor(own.length / 3)))
      );
    };
    return [
      sources.length > 0 &&
        urls(t.final_output.content).every((url) => texts.includes(url)) &&
        units(t.final_output.content).every(isBacked),
      sources,
    ];
  },
  memory_recall_same_group(t, p) {
    const found = memories(t).filter((event) => event.group_id === (p.group_id ?? t.scenario.group_id));
    const [text, fact] = [t.final_output.content, p.expected_memory_fact];
    const lines = text.match(/^[^\S\n]*[-*](?:\s[^\n]*\n?|\n)/gm) ?? [];
    const isShown =
      text.trim() !== "" &&
      (!contains(fact, "bullet") || lines.length > 0) &&
      (!contains(fact, "brief") || lines.every((line) => [...line].length <= 220));
    return [found.length > 0 || isShown, found];
  },
  no_cross_group_memory_use(t, p) {
    const foreign = memories(t).filter((event) => listed(p.forbidden_group_ids).includes(event.group_id));
    return [
      !foreign.length && (!p.require_event_level_proof || memories(t).length > 0),
      foreign.length ? foreign : memories(t),
    ];
  },
  scheduler_outbound_count(t, p) {
    const found = calls(t, p.tool ?? "outbound_send");
    const isMeant = t.scenario.trigger === "scheduler";
    const { exact = found.length, min = 0, max = Infinity } = p;
    return [
      isMeant && found.length === Number(exact) && found.length >= Number(min) && found.length <= Number(max),
      isMeant ? found : [],
    ];
  },
  scheduler_task_runs(t, p) {
    const task = t.scenario.task_id ?? t.scenario.scheduler_context?.task_id ?? null;
    const trigger = p.trigger_must_equal ?? "scheduler";
    const found = t.events.filter((event) => task !== null && event.task_id === task);
    const isCarried = found.length > 0 || task === null || trigger !== "scheduler";
    return [t.scenario.trigger === trigger && task === (p.task_id ?? task) && isCarried, found];
  },
  retry_policy_respected(t, p) {
    const made = calls(t, p.tool);
    const failed = errors(t).filter((event) => event.data.tool === p.tool);
    const types = listed(p.retry_on_error_types);
    if (!failed.every((event) => !types.length || types.includes(event.data.error_type))) return [false, failed];
    return [
      failed.length > 0 && made.length - 1 <= Number(p.max_retries),
      failed.length ? [...made, ...failed] : [],
    ];
  },
  graceful_failure_output(t, p) {
    const says = (phrase) => contains(t.final_output.content, phrase);
    const given = listed(p.forbidden_success_phrases);
    const claims = given.length ? given : SUCCESS_PHRASES;
    return [
      errors(t).length > 0 &&
        listed(p.allowed_failure_phrases).some(says) &&
        !((p.must_not_claim_success ?? true) && claims.some(says)),
      errors(t),
    ];
  },
  ask_clarifying_when_ambiguous(t, p) {
    if (p.when && !t.input_messages.some((message) => strings(message.content).some((text) => search(p.when, text))))
      return [true, []];
    const asked = t.final_output.content.match(/[^.!?\n]*\?/g) ?? [];
    const topics = listed(p.about_any_of);
    const acted =
      p.forbidden_tools === "all"
        ? calls(t)
        : calls(t).filter(({ data }) => listed(p.forbidden_tools).includes(data.tool));
    return [
      asked.some((one) => !topics.length || topics.some((topic) => contains(one, topic))) &&
        asked.length <= Number(p.max_questions ?? Infinity) &&
        !acted.length,
      [...outputs(t), ...acted],
    ];
  },
  no_fabricated_source_or_citation(t, p) {
    // addresses alone; DOIs, names and notes are left to others
    const sources = results(t, p.allowed_sources);
    const seen = [
      ...sources.flatMap(({ data }) => strings(data.result)),
      ...t.input_messages.flatMap(({ content }) => strings(content)),
      ...listed(p.known_sources),
    ]
      .join("\n")
      .toLowerCase();
    return [
      urls(t.final_output.content).every((url) => seen.includes(url.replace(/[.,;:!?*_]+$/, "").toLowerCase())),
      sources,
    ];
  },
  memory_update_on_correction(t, p) {
    const said =
      p.correction &&
      t.events.findLast(
        ({ type, data }) =>
          type === "message_received" && strings(data.content).some((text) => search(p.correction, text)),
      );
    const writes = memories(t).filter(
      (event) =>
        event.type === "memory_write" &&
        event.group_id === (p.group_id ?? t.scenario.group_id) &&
        event.seq > (said?.seq ?? 0n),
    );
    const good = writes.filter(
      ({ data }) => !p.expected_memory_fact || strings(data).some((text) => contains(text, p.expected_memory_fact)),
    );
    return [good.length > 0, [...(said ? [said] : []), ...(good.length ? good : writes)]];
  },
};

// "pass" or "fail" and the events looked at; null for a type that is not of the published format.
export function judge(type, params, trace) {
  if (!(type in TYPES)) return null;
  try {
    const [passed, events] = TYPES[type](trace, params);
    return { status: passed ? "pass" : "fail", event_refs: events.map((event) => event.event_id) };
  } catch (error) {
    if (error instanceof Refused) return { status: "fail", event_refs: [] };
    throw error;
  }
}
