import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "./api/types";
import { today } from "./lib/days";

/** The state that every page shares. */
export interface Scene {
  session: Session;
  project: string;
  timezone: string;
  /** Today in the organization's timezone. */
  today: string;
  /** The first day with stored events; null if the project stores all of them. */
  floor: string | null;
  query: URLSearchParams;
  /** The id of the company, person or group that the page shows. */
  of: string | null;
}

export const SceneContext = createContext<Scene | null>(null);

export function useScene(): Scene {
  const scene = useContext(SceneContext);
  if (!scene) throw new Error("no page is shown");
  return scene;
}

export const isAdmin = ({ role, share }: Session) => !share && role !== "member";

/** Whether the reader may make and change goals, segments, annotations and funnels. */
export const mayDefine = (session: Session) => isAdmin(session) && session.scopes.includes("admin");

/** Revenue needs the scope, and unless it is a share, the role of an owner or admin. */
export const readsMoney = (session: Session) => session.scopes.includes("revenue:read") && (session.share || isAdmin(session));

export const dayOf = (timezone: string) => today(timezone);
