// The second program: every format that verify.mjs leaves out. `node conformance/js/judge.mjs [KIT]` runs its cases.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { action, judgeRecord, pack } from "./actions.mjs";
import { judge, normalize } from "./assertions.mjs";
import { decide, policy, policyProblem, testCase } from "./cases.mjs";
import {
  bundle,
  dataset,
  receipt,
  replayReceipt,
  result,
  shadow,
  shadowSteps,
  summary,
  trace,
  withOtherLog,
  withReceipt,
  withReplayReceipt,
} from "./documents.mjs";
import { canonical, parse } from "./json.mjs";
import { allFormats, report, runCases, schemas, vectors } from "./kit.mjs";
import { disclosure, seal, withSeal } from "./seals.mjs";
import { FORMATS as VERIFIED, verifyCapture, verifyLog } from "./verify.mjs";

const log = (file, { lenient }) => verifyLog(file, schemas, lenient);
const READERS = {
  "RECEIPT.json": receipt,
  "receipt.json": replayReceipt,
  "replay.json": bundle,
  "trace.json": trace,
  "result.json": result,
  "summary.json": summary,
  "shadow.json": shadow,
  "shadow-steps.json": shadowSteps,
  "action.json": action,
  "actions.jsonl": action,
  "record.json": (file) => judgeRecord(parse(readFileSync(file), "jcs")),
  "pack.json": pack,
  "pack.jsonl": pack,
  "REPLAY.jsonl": log,
  "PUBLISHED.jsonl": log,
  capture: (directory) => verifyCapture(directory, schemas),
  "SEAL.json": seal,
  "DISCLOSURE.json": disclosure,
  "test.yaml": testCase,
  "policy.yaml": policy,
  "rows.jsonl": dataset,
  dataset,
};

function verifyCase(folder, expected) {
  const file = join(folder, expected.artifact);
  const beside = (name) => expected[name] && join(folder, expected[name]);
  const findings = READERS[expected.artifact](file, expected);
  if (beside("key")) return withSeal(file, beside("seal") ?? file, beside("key"), findings);
  if (beside("against")) return [...findings, ...withOtherLog(file, beside("against"))];
  if (!beside("receipt")) return findings;
  return [...findings, ...(expected.artifact === "capture" ? withReplayReceipt : withReceipt)(file, beside("receipt"))];
}

const same = (name, ours, wanted) => [name, ours === wanted || `expected ${wanted}, found ${ours}`];

function runTraces() {
  return vectors("bundle-trace", "traces").map(({ about, bundle: made, started_at: started, trace: wanted }) => {
    const ours = normalize(made, started);
    const named = Object.fromEntries(Object.keys(wanted).map((name) => [name, ours[name]]));
    return same(`bundle-trace: ${about}`, canonical(named), canonical(wanted));
  });
}

function runJudgements() {
  const { bundles, judgements, started_at: started } = vectors("judgement", "judgements");
  return judgements.map(({ type, run, params, status, event_refs }) => {
    const ours = judge(type, params, normalize(bundles[run], started));
    return ours
      ? same(`judgement: ${type} of ${run}`, canonical(ours), canonical({ status, event_refs }))
      : [type, null];
  });
}

function runDecisions() {
  return vectors("policy-decision", "decisions").map(({ about, policy: file, value, verdict, rule }) =>
    same(`policy-decision: ${about}`, policyProblem(file) ?? decide(file, value).join(), `${verdict},${rule}`),
  );
}

const FORMATS = allFormats.filter((format) => !VERIFIED.includes(format));
const VECTORS = ["bundle-trace", "judgement", "policy-decision"];
const cases = runCases(
  FORMATS.filter((format) => !VECTORS.includes(format)),
  verifyCase,
);
report([...cases, ...runTraces(), ...runJudgements(), ...runDecisions()], FORMATS);
