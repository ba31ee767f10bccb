/** Passes single keys on, unless somebody types or a dialog is open. */
export function onKeys(take: (key: string) => boolean): () => void {
  const onKey = (event: KeyboardEvent) => {
    const typed = event.target as HTMLElement;
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
    if (typed.closest?.("input, textarea, select, dialog")) return;
    const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
    if (take(key)) event.preventDefault();
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}
