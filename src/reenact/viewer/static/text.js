// Recorded values as short texts for people.

/** Control characters, and invisible or reordering ones, except line ends, tabs and needed joiners. */
const UNSEEN = /(?![\n\t]|(?<=\P{ASCII})[\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** The text with invisible characters written out: U+202E as `⟨U+202E⟩`, escape as `␛`. */
export function visible(text) {
  return String(text).replace(UNSEEN, (mark) => {
    const code = mark.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** `12 ms`, `1.23 s`, `2 min 3 s`. @param {number|null|undefined} ms */
export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(2)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** `12,345`. */
export function count(number) {
  return number.toLocaleString("en");
}

/** `1 event`, `2 events`. */
export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

/** `16.4 kB`. */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** `15 Nov 2026, 11:56`. @param {number|null|undefined} ms since the epoch */
export function moment(ms) {
  if (ms === null || ms === undefined) return "";
  /** @type {Intl.DateTimeFormatOptions} */
  const options = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" };
  return new Date(ms).toLocaleString("en-GB", options);
}
