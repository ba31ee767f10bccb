import { useEffect, useState } from "preact/hooks";
import { Refusal, ask, change, goWithSecret, signedOut } from "./api/client";
import type { Session } from "./api/types";
import { HOME, address, go, usePlace } from "./lib/router";
import { Failure } from "./parts/Card";
import { Shell } from "./Shell";
import { SignIn } from "./SignIn";

type Start = { session?: Session; error?: Refusal; isKnown: boolean; refused?: string };

/** Whoever signs in next sees nothing of what this one saw. */
const forgetAll = () => location.reload();

/** A one-time code or a share comes behind `#`, which is sent to no server and kept in no log. */
async function takeInvitation(): Promise<string | undefined> {
  const parts = new URLSearchParams(location.hash.slice(1));
  const [code, share] = [parts.get("code"), parts.get("share")];
  if (!code && !share) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (share && self !== top) {
    goWithSecret(share);
    return;
  }
  try {
    await change("POST", "/session", code ? { code } : { share });
  } catch (error) {
    return (error as Refusal).message;
  }
}

async function load(): Promise<Start> {
  const refused = await takeInvitation();
  try {
    const session = await ask<Session>("/session");
    return { session, isKnown: true };
  } catch (error) {
    const reason = error as Refusal;
    return { isKnown: true, refused, error: reason.status === 401 ? undefined : reason };
  }
}

export function App() {
  const [start, setStart] = useState<Start>({ isKnown: false });
  const place = usePlace();
  const again = () => void load().then(setStart);
  useEffect(() => {
    again();
  }, []);
  useEffect(() => {
    if (!start.session) return;
    signedOut.addEventListener("change", forgetAll);
    return () => signedOut.removeEventListener("change", forgetAll);
  }, [start.session]);

  const { session } = start;
  const project = session?.projects.find(({ project_id }) => project_id === place.project)?.project_id ?? session?.projects[0]?.project_id;
  useEffect(() => {
    if (session && project && project !== place.project) go(address(project, place.project ? HOME : place.page, null, place.query), true);
  }, [session, project, place.project]);

  if (!start.isKnown) return null;
  if (start.error) return <Failure error={start.error} again={again} />;
  if (!session) return <SignIn refused={start.refused} onSignedIn={again} />;
  if (!project || project !== place.project) return null;
  const signOut = async () => {
    await change("DELETE", "/session").catch(() => {});
    forgetAll();
  };
  return <Shell session={session} project={project} place={place} onSignOut={signOut} />;
}
