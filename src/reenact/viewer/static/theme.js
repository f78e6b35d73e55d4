// The light or dark theme: that of the system, until the reader chooses one.

import { h } from "./dom.js";

const KEY = "reenact.theme";

export function applyTheme() {
  const chosen = remembered();
  if (chosen) document.documentElement.dataset.theme = chosen;
}

export function toggleTheme() {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // A page opened from a file may have no storage; the choice is then lost with the page.
  }
}

export function themeButton() {
  return h(
    "button.plain",
    {
      type: "button",
      title: "Light or dark (t)",
      "aria-label": "Switch between light and dark",
      onclick: toggleTheme,
    },
    "◐",
  );
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function remembered() {
  try {
    const value = localStorage.getItem(KEY);
    return value === "dark" || value === "light" ? value : null;
  } catch {
    return null;
  }
}
