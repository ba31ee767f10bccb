import { useState } from "preact/hooks";

const KEY = "headcount_theme";
const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

function stored(): Theme {
  const theme = document.documentElement.dataset.theme;
  return theme === "light" || theme === "dark" ? theme : "auto";
}

/** Shows the theme that was chosen on an earlier visit, else the system's. */
export function restoreTheme(): void {
  try {
    const theme = localStorage.getItem(KEY);
    if (theme) document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage, it is the system's.
  }
}

/** The theme that was chosen, and a function that chooses the next one. */
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
      // Without storage, it holds until the page is left.
    }
  };
  return [theme, next];
}
