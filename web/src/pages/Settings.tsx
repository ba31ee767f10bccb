import type { FunctionComponent } from "preact";
import { useScene } from "../context";
import { address } from "../lib/router";
import { Channels } from "./settings/Channels";
import { Goals } from "./settings/Goals";
import { Members } from "./settings/Members";
import { OrganizationSettings } from "./settings/Organization";
import { Privacy } from "./settings/Privacy";
import { Projects } from "./settings/Projects";
import { Shares } from "./settings/Shares";
import { Tokens } from "./settings/Tokens";
import { Tracking } from "./settings/Tracking";
import { Webhooks } from "./settings/Webhooks";
import css from "./Settings.module.css";

const SECTIONS: [string, string, FunctionComponent][] = [
  ["tracking", "Tracking", Tracking],
  ["goals", "Goals", Goals],
  ["projects", "Projects", Projects],
  ["tokens", "API tokens", Tokens],
  ["members", "Members", Members],
  ["shares", "Shares", Shares],
  ["webhooks", "Webhooks", Webhooks],
  ["channels", "Channels", Channels],
  ["privacy", "Privacy requests", Privacy],
  ["organization", "Organization", OrganizationSettings],
];

export function Settings() {
  const { of, project } = useScene();
  const [id, , View] = SECTIONS.find(([id]) => id === of) ?? SECTIONS[0]!;
  return (
    <>
      <nav class={css.tabs} aria-label="Settings">
        {SECTIONS.map(([section, name]) => (
          <a key={section} class={css.tab} href={address(project, "settings", section)} aria-current={section === id ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <View />
    </>
  );
}
