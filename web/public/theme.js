// Before the page is painted: the theme that was chosen, else the system's.
try {
  const theme = localStorage.getItem("headcount_theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {}
