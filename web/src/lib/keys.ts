/** Listens for single keys, except while you type or a dialog is open. */
export function onKeys(take: (key: string) => boolean): () => void {
  const onKey = (event: KeyboardEvent) => {
    const typed = event.target as HTMLElement;
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
    // A dialog that has closed keeps the focus until the browser draws again.
    const dialog = typed.closest?.("dialog");
    if (dialog ? dialog.open : typed.closest?.("input, textarea, select")) return;
    const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
    if (take(key)) event.preventDefault();
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}
