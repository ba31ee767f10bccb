import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** Renders its children, which load their data, once they scroll into view or are printed. */
export function Lazy({ height, class: look, children }: { height: number; class?: string; children: ComponentChildren }) {
  const place = useRef<HTMLDivElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (isSeen) return;
    const see = () => setSeen(true);
    const observer = new IntersectionObserver((entries) => entries.some(({ isIntersecting }) => isIntersecting) && see());
    observer.observe(place.current!);
    addEventListener("beforeprint", see);
    return () => {
      observer.disconnect();
      removeEventListener("beforeprint", see);
    };
  }, [isSeen]);
  return (
    <div ref={place} class={look} style={isSeen ? undefined : { minHeight: `${height}px` }}>
      {isSeen && children}
    </div>
  );
}
