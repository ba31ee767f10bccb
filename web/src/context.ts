import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "./api/types";
import { today } from "./lib/days";

/** What every page needs to know. */
export interface Scene {
  session: Session;
  project: string;
  timezone: string;
  /** The organization's day. */
  today: string;
  /** The first day of which the project keeps events; null if it keeps all. */
  floor: string | null;
  query: URLSearchParams;
  of: string | null;
}

export const SceneContext = createContext<Scene | null>(null);

export function useScene(): Scene {
  const scene = useContext(SceneContext);
  if (!scene) throw new Error("no page is shown");
  return scene;
}

export const isAdmin = ({ role, share }: Session) => !share && role !== "member";

/** Money is for owners and admins with the scope, and for shares that have it. */
export const readsMoney = (session: Session) => session.scopes.includes("revenue:read") && (session.share || isAdmin(session));

export const dayOf = (timezone: string) => today(timezone);
