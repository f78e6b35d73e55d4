// Runs the cases of the kit: what a verifier finds in each, beside what it must find.
import { readFileSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Refused, canonical, parse } from "./json.mjs";

export const KIT = process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), "..");
const read = (...names) => parse(readFileSync(join(KIT, ...names)));
const foldersIn = (folder) => readdirSync(folder).filter((name) => statSync(join(folder, name)).isDirectory());

const schemaFiles = readdirSync(join(KIT, "schemas"));
export const schemas = Object.fromEntries(schemaFiles.map((file) => [basename(file, ".json"), read("schemas", file)]));
export const vectors = (format, name) => read(format, `${name}.json`);

// The formats of the kit, canonical JSON among them.
const NO_FORMATS = ["js", "make", "schemas", "__pycache__"];
export const allFormats = foldersIn(KIT).filter((name) => !NO_FORMATS.includes(name));

// A result for every case of these formats; verify(folder, expected) throws what cannot be read.
export function runCases(formats, verify) {
  return formats.flatMap((format) =>
    foldersIn(join(KIT, format)).map((name) => {
      const folder = join(KIT, format, name);
      const expected = JSON.parse(readFileSync(join(folder, "expected.json")));
      return [`${format}/${name}`, compare(expected, () => verify(folder, expected))];
    }),
  );
}

// The vectors of canonical JSON: a text and its canonical form, or null where it must be refused.
export function runCanonical() {
  return ["replay", "jcs"].flatMap((profile) =>
    vectors("canonical-json", profile).map(({ about, json, canonical: wanted }) => {
      let text = null;
      try {
        text = canonical(parse(json, profile), profile);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
      }
      return [`canonical-json/${profile}: ${about}`, text === wanted || `expected ${wanted}, found ${text}`];
    }),
  );
}

function compare(expected, verify) {
  const lineOf = ({ severity, code, line, path }) => `${severity} ${code} ${line} ${path}`;
  const tell = (findings) => findings.map(lineOf).sort().join("\n");
  const wanted = expected.exit === 2 ? "cannot be read" : tell(expected.findings);
  let ours = "cannot be read";
  try {
    ours = tell(verify());
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
  return ours === wanted || `expected\n${wanted}\nfound\n${ours}`;
}

// Every result is [name, true], [name, what is wrong], or [name, null] for what the program does not cover.
export function report(results, formats) {
  const ran = results.filter(([, good]) => good !== null);
  const failed = ran.filter(([, good]) => good !== true);
  const left = new Set(results.filter(([, good]) => good === null).map(([name]) => name));
  failed.forEach(([name, good]) => console.log(`${name}: ${good}`));
  console.log(`covered: ${formats.join(", ")}`);
  console.log(`not covered: ${[...allFormats.filter((format) => !formats.includes(format)), ...left].join(", ")}`);
  console.log(`${ran.length} cases, ${failed.length} failed`);
  process.exitCode = failed.length || !ran.length ? 1 : 0;
}
