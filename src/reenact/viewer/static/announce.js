// What a screen reader is told when something changes out of its sight.

/** @param {string} text */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}
