import { useEffect, useState } from "preact/hooks";

/** A debounced value, so that a search runs once you stop typing. */
export function useDelayed<T>(value: T, ms = 250): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
