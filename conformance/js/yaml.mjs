// The YAML that people write tests and policies in: the core schema of YAML 1.2 without tags, anchors and
// aliases. Comes to plain values, and to the line of each JSON path.
import { Refused, decode } from "./json.mjs";
import { childPath } from "./schema.mjs";

export function parseYaml(bytes) {
  const text = decode(bytes).replace(/\r\n?/g, "\n");
  if (/[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]/u.test(text))
    throw new Refused("unprintable");
  const reader = new Reader(text.split("\n"));
  return { value: reader.document(), lines: reader.places };
}

class Reader {
  constructor(lines) {
    this.rows = lines
      .map((line, index) => ({ text: line, line: index + 1 }))
      .filter(({ text }) => !/^\s*(#.*)?$/.test(text));
    this.places = new Map();
    this.at = 0;
  }

  document() {
    if (this.rows[0]?.text === "---") this.at++;
    if (!this.rows[this.at]) throw new Refused("no document");
    const value = this.block(this.indent(), "$", 0);
    if (this.at < this.rows.length)
      throw new Refused("a second document, or odd indentation", null, this.rows[this.at].line);
    return value;
  }

  indent() {
    const { text, line } = this.rows[this.at];
    if (/^ *\t/.test(text)) throw new Refused("a tab indents", null, line);
    return text.search(/[^ ]/);
  }

  place(path, line) {
    if (!this.places.has(path)) this.places.set(path, line);
  }

  block(indent, path, depth) {
    const row = this.rows[this.at];
    this.place(path, row.line);
    if (/^- |^-$/.test(row.text.slice(indent))) return this.sequence(indent, path, depth);
    if (keyOf(row.text.slice(indent))) return this.mapping(indent, path, depth);
    return this.flow(indent, path, depth);
  }

  sequence(indent, path, depth) {
    const items = [];
    while (
      this.at < this.rows.length &&
      this.indent() === indent &&
      /^- |^-$/.test(this.rows[this.at].text.slice(indent))
    ) {
      const row = this.rows[this.at];
      const inner = row.text.slice(indent + 1).search(/[^ ]/);
      row.text = `${" ".repeat(indent + 1)}${row.text.slice(indent + 1)}`; // the item, as a block of its own
      if (inner < 0) this.at++;
      items.push(
        inner < 0
          ? this.below(indent, childPath(path, items.length), row.line, depth)
          : this.block(indent + 1 + inner, childPath(path, items.length), depth + 1),
      );
    }
    return items;
  }

  mapping(indent, path, depth) {
    const members = Object.create(null);
    while (this.at < this.rows.length && this.indent() === indent) {
      const row = this.rows[this.at];
      const found = keyOf(row.text.slice(indent));
      if (!found) throw new Refused("a key is expected", null, row.line);
      const key = found.quoted ? quotedText(found.key) : scalar(found.key, row.line);
      if (typeof key !== "string" || key in members)
        throw new Refused("a key is text, and stands once", null, row.line);
      const child = childPath(path, key);
      this.place(child, row.line);
      const rest = row.text.slice(indent + found.length);
      if (/^ *(#.*)?$/.test(rest)) {
        this.at++;
        members[key] = this.below(indent, child, row.line, depth);
      } else members[key] = this.flow(indent + found.length + rest.search(/[^ ]/), child, depth + 1);
    }
    return members;
  }

  // The value behind a key or a dash that stands alone on its line.
  below(indent, path, line, depth) {
    if (this.at < this.rows.length) {
      const inner = this.indent();
      const isList = inner === indent && /^- |^-$/.test(this.rows[this.at].text.slice(inner));
      if (inner > indent || isList) return this.block(inner, path, depth + 1);
    }
    this.place(path, line);
    return null;
  }

  // A scalar or a flow collection that begins in the current row at a column; it may go on in rows below.
  flow(column, path, depth) {
    let { text, line } = this.rows[this.at++];
    let at = column;
    const fail = (reason) => {
      throw new Refused(reason, null, line);
    };
    const space = () => {
      for (;;) {
        while (text[at] === " ") at++;
        if (at < text.length && !(text[at] === "#" && text[at - 1] === " ")) return;
        if (this.at >= this.rows.length) fail("not closed");
        ({ text, line } = this.rows[this.at++]);
        at = 0;
      }
    };
    const value = (inside, place, level) => {
      this.place(place, line);
      if (level > 100) fail("nested too deep");
      const sign = text[at];
      if ("&*!".includes(sign)) fail("anchors, aliases and tags are not read");
      if (sign === "[" || sign === "{") return collection(sign, place, level);
      if (sign === '"' || sign === "'") return quoted();
      const plain = inside ? /(?:[^,[\]{}:#]|:(?=[^ ,[\]{}])|(?<=\S)#)*/uy : /(?:[^:#]|:(?=\S)|(?<=\S)#)*/uy;
      plain.lastIndex = at;
      const found = plain.exec(text)[0];
      at += found.length;
      return scalar(found.trim(), line);
    };
    const quoted = () => {
      const found = /"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'/uy;
      found.lastIndex = at;
      const match = found.exec(text) ?? fail("a quote is not closed");
      at = found.lastIndex;
      return quotedText(match[0]);
    };
    const collection = (sign, place, level) => {
      const close = { "[": "]", "{": "}" }[sign];
      const items = sign === "[" ? [] : Object.create(null);
      for (at++, space(); text[at] !== close; space()) {
        if (sign === "[") items.push(value(true, childPath(place, items.length), level + 1));
        else {
          const [start, isQuoted] = [line, "\"'".includes(text[at])];
          const key = value(true, `${place} key`, level + 1);
          if (typeof key !== "string" || key in items) fail("a key is text, and stands once");
          this.place(childPath(place, key), start);
          space();
          if (text[at] !== ":" && !isQuoted) fail("a colon is expected");
          at++;
          space();
          items[key] = ",}".includes(text[at]) ? null : value(true, childPath(place, key), level + 1);
        }
        space();
        if (text[at] === ",") at++;
        else if (text[at] !== close) fail("a comma is expected");
      }
      at++;
      return items;
    };
    const result = value(false, path, depth);
    if (!/^ *(#.*)?$/.test(text.slice(at))) fail("text behind the value");
    return result;
  }
}

function keyOf(text) {
  const found = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'[{&*!#-][^#:]*?(?::\S[^#:]*?)*|-[^\s:]+) *:(?= |$)/u.exec(
    text,
  );
  return found && { key: found[1], quoted: /^["']/.test(found[1]), length: found[0].length };
}

const quotedText = (text) => (text[0] === "'" ? text.slice(1, -1).replaceAll("''", "'") : JSON.parse(text));

function scalar(text, line) {
  if (/^[&*!]/.test(text)) throw new Refused("anchors, aliases and tags are not read", null, line);
  if (/^(|~|null|Null|NULL)$/.test(text)) return null;
  if (/^(true|True|TRUE)$/.test(text)) return true;
  if (/^(false|False|FALSE)$/.test(text)) return false;
  if (/^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$/.test(text)) throw new Refused("not finite", null, line);
  if (/^([-+]?\d+|0o[0-7]+|0x[0-9a-fA-F]+)$/.test(text)) {
    const integer = text[0] === "-" ? -BigInt(text.slice(1)) : BigInt(text.replace("+", ""));
    if (integer < -(2n ** 63n) || integer >= 2n ** 64n) throw new Refused("beyond 64 bits", null, line);
    return integer;
  }
  return /^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$/.test(text) ? Number(text) : text;
}
