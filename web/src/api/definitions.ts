// The goals, segments and annotations of the project.

import { useScene } from "../context";
import type { Annotation, Goal, Goals, Segment } from "./types";
import { useAnswer } from "./use";

/** The names of goals by their ids. Shares know them from the figures. */
export function useGoalNames(isNeeded = true): Map<string, string> {
  const { project, session, today } = useScene();
  const path = session.share ? "analytics/goals" : "goals";
  const body = session.share ? { start_date: today, end_date: today } : undefined;
  const { data } = useAnswer<Pick<Goals, "goals"> | { goals: Goal[] }>(isNeeded ? `/projects/${project}/${path}` : null, body);
  return new Map(data?.goals.map(({ goal_id, name }) => [goal_id, name]));
}

/** The segments. Shares see those that name no people or companies. */
export function useSegments(isNeeded = true) {
  const { project } = useScene();
  return useAnswer<{ segments: Segment[] }>(isNeeded ? `/projects/${project}/segments` : null);
}

/** The annotations, in the order of their days. Shares may not read them. */
export function useAnnotations(): Annotation[] {
  const { project, session } = useScene();
  const { data } = useAnswer<{ annotations: Annotation[] }>(session.share ? null : `/projects/${project}/annotations`, undefined, project);
  return data?.annotations ?? [];
}
