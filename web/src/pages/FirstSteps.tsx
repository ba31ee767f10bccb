import { useEffect } from "preact/hooks";
import { useLive } from "../api/live";
import type { ProjectSettings } from "../api/types";
import { useAnswer } from "../api/use";
import { useScene } from "../context";
import { Card, Waiting } from "../parts/Card";
import { Copyable } from "../parts/Form";
import css from "./FirstSteps.module.css";

export const snippet = (key: string) => `<script defer src="${location.origin}/hc.js" data-key="${key}"></script>`;

/** Setup steps, shown while a project has no events. */
export function FirstSteps({ onEvents }: { onEvents: () => void }) {
  const { project } = useScene();
  const { frame } = useLive(project);
  const settings = useAnswer<ProjectSettings>(`/projects/${project}`);
  // Without access to the key, a placeholder stands in.
  const key = settings.data?.public_key ?? "pk_…";
  const events = frame?.today.events ?? 0;
  useEffect(() => {
    if (events) onEvents();
  }, [events]);
  if (!settings.data && !settings.error) return <Waiting height={320} />;
  return (
    <Card title="No events yet">
      <div class={css.steps}>
        <div class={css.step}>
          <h3>Add this snippet to the head of your pages</h3>
          <Copyable name="snippet" text={snippet(key)} />
        </div>
        <div class={css.step}>
          <h3>Or send an event with curl</h3>
          <Copyable name="command" text={`curl -X POST ${location.origin}/track -H 'x-service-pk: ${key}' -H 'content-type: application/json' -d '{"name":"signup","user_id":"you"}'`} />
        </div>
        <p class={css.wait} role="status">
          <span class={css.dot} />
          Waiting for the first event. It will appear here within a second.
        </p>
      </div>
    </Card>
  );
}
