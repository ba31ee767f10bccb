import { useEffect, useState } from "preact/hooks";
import { Refusal, ask, change, outlived, signedOut, takeSecret, usesCookie } from "./api/client";
import type { Session } from "./api/types";
import { HOME, SHARE, address, go, usePlace } from "./lib/router";
import { Failure, State } from "./parts/Card";
import { Shell } from "./Shell";
import { Replace, SignIn } from "./SignIn";

/** The result of opening a sign-in link. */
type Invitation = { refused?: string; question?: { text: string; code: string } };
type Start = Invitation & { session?: Session; error?: Refusal; isKnown: boolean };

/** Drops all state, so that the next person to sign in sees none of it. */
const forgetAll = () => location.reload();

/** Sign-in codes and share secrets come after `#`: browsers don't send it, so no log has it. */
async function takeInvitation(): Promise<Invitation> {
  const parts = new URLSearchParams(location.hash.slice(1));
  const [code, share] = [parts.get("code"), parts.get("share")];
  if (!code && !share) return {};
  history.replaceState(null, "", location.pathname + location.search);
  if (share && SHARE) takeSecret(SHARE, share);
  if (!code || !usesCookie) return {};
  try {
    await change("POST", "/session", { code });
  } catch (error) {
    const { code: why, message } = error as Refusal;
    return why === "signed_in" ? { question: { text: message, code } } : { refused: message };
  }
  return {};
}

async function load(): Promise<Start> {
  const invitation = await takeInvitation();
  if (invitation.question) return { ...invitation, isKnown: true };
  try {
    const session = await ask<Session>("/session");
    return { session, isKnown: true };
  } catch (error) {
    const reason = error as Refusal;
    return { ...invitation, isKnown: true, error: reason.status === 401 ? undefined : reason };
  }
}

export function App() {
  const [start, setStart] = useState<Start>({ isKnown: false });
  const place = usePlace();
  const again = () => void load().then(setStart);
  const renew = () => void load().then((next) => next.session && setStart(next));
  useEffect(() => {
    again();
  }, []);
  useEffect(() => {
    if (!start.session) return;
    signedOut.addEventListener("change", forgetAll);
    outlived.addEventListener("change", renew);
    return () => {
      signedOut.removeEventListener("change", forgetAll);
      outlived.removeEventListener("change", renew);
    };
  }, [start.session]);

  const { session } = start;
  const isPlaced = (project?: string) => SHARE !== null || project === place.project;
  const project = session?.projects.find(({ project_id }) => project_id === place.project)?.project_id ?? session?.projects[0]?.project_id;
  useEffect(() => {
    if (session && project && !isPlaced(project)) go(address(project, place.project ? HOME : place.page, null, place.query), true);
  }, [session, project, place.project]);

  if (!start.isKnown) return null;
  if (start.error) return <Failure error={start.error} again={again} />;
  if (start.question) return <Replace {...start.question} onDone={again} />;
  if (!session && SHARE) return <State title="This share isn't available">The link is incomplete, or the share has expired or was revoked.</State>;
  if (!session) return <SignIn refused={start.refused} onSignedIn={again} />;
  if (!project || !isPlaced(project)) return null;
  const signOut = async () => {
    await change("DELETE", "/session").catch(() => {});
    forgetAll();
  };
  return <Shell session={session} project={project} place={place} onSignOut={signOut} />;
}
