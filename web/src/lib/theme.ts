import { useState } from "preact/hooks";

const KEY = "headcount_theme";
const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

function stored(): Theme {
  const theme = document.documentElement.dataset.theme;
  return theme === "light" || theme === "dark" ? theme : "auto";
}

/** Applies the theme from an earlier visit, or the system's. */
export function restoreTheme(): void {
  try {
    const theme = localStorage.getItem(KEY);
    if (theme) document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage, the page uses the system's theme.
  }
}

/** The current theme, and a function that switches to the next one. */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(stored);
  const next = () => {
    const chosen = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
    setTheme(chosen);
    try {
      if (chosen === "auto") {
        delete document.documentElement.dataset.theme;
        localStorage.removeItem(KEY);
      } else {
        document.documentElement.dataset.theme = chosen;
        localStorage.setItem(KEY, chosen);
      }
    } catch {
      // Without storage, the theme lasts until you leave the page.
    }
  };
  return [theme, next];
}
