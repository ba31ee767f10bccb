import { useEffect, useState } from "preact/hooks";

/** A value that stays until nobody has changed it for a moment: what is typed is asked for once. */
export function useDelayed<T>(value: T, ms = 250): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
