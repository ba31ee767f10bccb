import { useEffect, useState } from "preact/hooks";
import { liveDay, useLive, type LiveStatus } from "./api/live";
import type { Session } from "./api/types";
import { SceneContext, dayOf, isAdmin, readsMoney, type Scene } from "./context";
import { count } from "./lib/format";
import { onKeys } from "./lib/keys";
import { choiceOf, isChosen } from "./lib/people";
import { HOME, address, go, setQuery, type Place } from "./lib/router";
import { useTheme } from "./lib/theme";
import { Dialog } from "./parts/Dialog";
import { FilterDialog } from "./parts/Filters";
import { Icon, type IconName } from "./parts/Icon";
import { Mark } from "./parts/Mark";
import { Menu, menu } from "./parts/Menu";
import { PeriodPicker, choosePeriod } from "./parts/PeriodPicker";
import { PERIODS, floorOf } from "./lib/period";
import { PAGES, SETUP, type Page } from "./pages";
import { buttons } from "./parts/Card";
import css from "./Shell.module.css";

interface ShellProps {
  session: Session;
  project: string;
  place: Place;
  onSignOut: () => void;
}

/** The parameters that links to other pages keep. */
const SHARED = ["period", "from", "to", "compare", "f", "p", "segment"];

export function Shell({ session, project, place, onSignOut }: ShellProps) {
  const { timezone } = session;
  const today = useToday(timezone);
  const [dialog, setDialog] = useState<"keys" | "filter" | null>(null);
  const [isOpen, setOpen] = useState(false);
  const pages = PAGES.filter((page) => sees(session, page));
  const page = pages.find(({ id }) => id === place.page) ?? pages[0]!;
  const floor = floorOf(session.projects.find(({ project_id }) => project_id === project)!, today);
  const scene: Scene = { session, project, timezone, today, floor, query: place.query, of: place.of };
  const link = (id: string) => {
    const kept = new URLSearchParams([...place.query].filter(([name]) => SHARED.includes(name)));
    return address(project, id, null, kept);
  };
  // Browsers report late that a dialog closed. Another one may be open by then.
  const closed = (one: "keys" | "filter") => setDialog((open) => (open === one ? null : open));
  liveDay(today);

  useEffect(() => {
    document.title = `${page.name} · headcount`;
    setOpen(false);
  }, [page.id, place.of]);
  useEffect(
    () =>
      onKeys((key) => {
        const period = PERIODS.find((period) => period.key === key);
        if (period && page.hasPeriod) choosePeriod(period.id);
        else if (key === "R") go(link("live"));
        else if (key === "X" && page.hasPeriod) setQuery({ compare: place.query.get("compare") === "none" ? null : "none" });
        else if (key === "?") setDialog("keys");
        else if (key === "/") openSearch(() => page.hasFilters && setDialog("filter"));
        else return false;
        return true;
      }),
    [page.id, place.query.toString()],
  );

  return (
    <SceneContext.Provider value={scene}>
      <a class={css.skip} href="#main">
        Skip to main content
      </a>
      <div class={css.shell}>
        <header class={css.side} data-open={isOpen}>
          <a class={css.brand} href={link(HOME)}>
            <Mark class={css.mark!} />
            headcount
          </a>
          <button type="button" class={css.menuButton} aria-expanded={isOpen} aria-label="Pages" onClick={() => setOpen(!isOpen)}>
            <Icon name={isOpen ? "close" : "menu"} size={18} />
          </button>
          <nav class={css.nav} aria-label="Pages">
            {pages.map((one, index) => (
              <>
                {one.group !== pages[index - 1]?.group && <div class={css.navLabel}>{one.group}</div>}
                <a class={css.link} href={link(one.id)} aria-current={one === page ? "page" : undefined}>
                  <Icon name={one.icon as IconName} />
                  {one.name}
                </a>
              </>
            ))}
          </nav>
          <Foot onKeys={() => setDialog("keys")} onSignOut={session.share ? undefined : onSignOut} />
        </header>
        <main id="main" class={css.main} tabIndex={-1}>
          <div class={css.bar}>
            <h1 class={css.title}>{page.name}</h1>
            <LiveDot project={project} href={link("live")} />
            <div class={css.tools}>
              {session.projects.length > 1 && <ProjectMenu session={session} project={project} place={place} />}
              {page.hasFilters && (
                <button type="button" class={buttons.plain} onClick={() => setDialog("filter")}>
                  <Icon name="filter" size={14} />
                  Filter
                </button>
              )}
              {page.hasPeriod && <PeriodPicker />}
            </div>
          </div>
          {!page.hasFilters && page.group !== SETUP && isChosen(choiceOf(place.query)) && (
            <p class={css.unfiltered} role="note">
              The filters of other pages don't apply to this page.
            </p>
          )}
          <page.View key={`${project} ${page.id} ${place.of}`} />
          <p class={css.notice}>Times are in {timezone}, the organization's timezone.</p>
        </main>
      </div>
      {dialog === "keys" && <KeysDialog onClose={() => closed("keys")} />}
      {dialog === "filter" && <FilterDialog onClose={() => closed("filter")} />}
    </SceneContext.Provider>
  );
}

function sees(session: Session, page: Page): boolean {
  if (page.needs === "money") return !session.share || readsMoney(session);
  return page.needs === "anyone" || (page.needs === "admin" ? isAdmin(session) : !session.share);
}

function openSearch(otherwise: () => void): void {
  const search = document.querySelector<HTMLElement>("dialog [data-search], main [data-search]");
  if (search) search.focus();
  else otherwise();
}

/** Today's date, updated while the page stays open past midnight. */
function useToday(timezone: string): string {
  const [today, setToday] = useState(() => dayOf(timezone));
  useEffect(() => {
    const timer = setInterval(() => setToday(dayOf(timezone)), 15_000);
    return () => clearInterval(timer);
  }, [timezone]);
  return today;
}

const STATUS: Record<LiveStatus, string> = {
  waiting: "Connecting",
  live: "Live",
  polling: "Updates every 5 seconds",
  lost: "Reconnecting",
  refused: "Not live",
};

function LiveDot({ project, href }: { project: string; href: string }) {
  const { status, frame } = useLive(project);
  const online = status === "live" && frame ? `${count(frame.online.users_5m)} online` : STATUS[status];
  return (
    <a class={css.live} href={href} title={STATUS[status]}>
      <span class={css.dot} data-status={status} />
      {online}
    </a>
  );
}

function ProjectMenu({ session, project, place }: { session: Session; project: string; place: Place }) {
  const name = session.projects.find(({ project_id }) => project_id === project)?.name ?? project;
  return (
    <Menu label={`Project: ${name}`} text={name} class={css.project}>
      {() =>
        session.projects.map(({ project_id, name }) => (
          <a key={project_id} class={menu.item} href={address(project_id, place.page, null, place.query)} aria-current={project_id === project}>
            {name}
          </a>
        ))
      }
    </Menu>
  );
}

function Foot({ onKeys, onSignOut }: { onKeys: () => void; onSignOut?: () => void }) {
  const [theme, next] = useTheme();
  const icons: Record<string, IconName> = { light: "sun", dark: "moon", auto: "auto" };
  return (
    <div class={css.foot}>
      <button type="button" class={css.footButton} title={`Theme: ${theme}`} aria-label={`Theme: ${theme}. Switch theme.`} onClick={next}>
        <Icon name={icons[theme]!} />
      </button>
      <button type="button" class={css.footButton} title="Keyboard shortcuts" aria-label="Keyboard shortcuts" onClick={onKeys}>
        <Icon name="keyboard" />
      </button>
      {onSignOut && (
        <button type="button" class={css.footButton} title="Sign out" aria-label="Sign out" onClick={onSignOut}>
          <Icon name="out" />
        </button>
      )}
    </div>
  );
}

const KEYS: [string, string][] = [
  ["/", "Search or add a filter"],
  ["?", "Show these shortcuts"],
  ["Esc", "Close"],
  ["R", "Go to Live"],
  ["X", "Turn comparison on or off"],
];

function KeysDialog({ onClose }: { onClose: () => void }) {
  const keys = [...KEYS, ...PERIODS.map(({ key, name }): [string, string] => [key, name])];
  return (
    <Dialog title="Keyboard shortcuts" isNarrow onClose={onClose}>
      <dl class={css.keys}>
        {keys.map(([key, name]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{name}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}
