export function Mark({ class: look }: { class: string }) {
  return (
    <svg class={look} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <rect width="16" height="16" rx="4" fill="currentColor" />
      <path d="M4 12V8.5M8 12V4M12 12V6.5" stroke="var(--accent-ink)" stroke-width="2" stroke-linecap="round" />
    </svg>
  );
}
