// The badge that shows whether a run is valid; verified in the background on request.

import { announce } from "./announce.js";
import { fill, h, recorded } from "./dom.js";
import { plural } from "./text.js";

const POLL_MS = 400;
const SHOWN_FINDINGS = 200;

export function verifyButton(source, run) {
  const button = h(
    "button.badge",
    { type: "button", title: "Check every digest, link and number (v)", "aria-live": "polite" },
    "Verify",
  );
  const findings = h("div.findings");
  const element = h("div.verification", {}, button, findings);
  let isRunning = false;

  async function verify() {
    if (isRunning) return;
    isRunning = true;
    try {
      showReport(await finished(source, run, (share) => showProgress(button, share)));
    } catch (error) {
      showVerdict(button, "bad", `Cannot be verified: ${error instanceof Error ? error.message : error}`);
    }
    isRunning = false;
  }

  function showReport(report) {
    const errors = report.findings.filter((finding) => finding.severity !== "warning").length;
    const warnings = report.findings.length - errors;
    const said = errors
      ? plural(errors, "problem")
      : warnings
        ? `Verified, ${plural(warnings, "warning")}`
        : "Verified";
    showVerdict(button, errors ? "bad" : "good", said);
    fill(findings, report.findings.length ? findingList(report.findings) : "");
  }

  button.addEventListener("click", verify);
  return { element, verify };
}

async function finished(source, run, onProgress) {
  for (;;) {
    const answer = await source.check(run);
    if (answer.report) return answer.report;
    if (answer.problem) throw new Error(answer.problem);
    onProgress(answer.share);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function showProgress(button, share) {
  button.className = "badge is-running";
  button.textContent = `Verifying… ${Math.floor(share * 100)} %`;
}

function showVerdict(button, verdict, said) {
  button.className = `badge is-${verdict}`;
  button.textContent = `${verdict === "good" ? "✓" : "✗"} ${said}`;
  announce(said);
}

function findingList(findings) {
  const items = findings.slice(0, SHOWN_FINDINGS).map((finding) => {
    const place = [finding.file, finding.line]
      .filter((part) => part !== undefined && part !== null)
      .join(":");
    return h(
      `li.${finding.severity === "warning" ? "warning" : "error"}`,
      {},
      recorded("span.code", finding.code),
      recorded("span.place", place),
      recorded("span.what", finding.message),
    );
  });
  const left = findings.length - items.length;
  if (left > 0) items.push(h("li", {}, `… and ${left} more; reenact verify --json lists all`));
  return h("details", { open: true }, h("summary", {}, "Findings"), h("ul", {}, ...items));
}
