import { useLive } from "../api/live";
import { readsMoney, useScene } from "../context";
import { at, brief, briefMoney, clock, count, counted } from "../lib/format";
import { Chart } from "../chart/Chart";
import { BreakdownRows, type Dimension } from "../parts/BreakdownCard";
import { Card, State, Waiting } from "../parts/Card";
import { Tiles, type Tile } from "../parts/Tiles";
import { PAGES_OF_SITE, SOURCES } from "./dimensions";
import layout from "./layout.module.css";
import css from "./Live.module.css";

export function Live() {
  const { project, session, timezone } = useScene();
  const { frame, status, notifications } = useLive(project);
  if (!frame && status === "refused") return <State title="No live figures">The server refused the live stream.</State>;
  if (!frame) return <Waiting height={320} />;
  const { events, unique_users, sessions, pageviews, revenue, orders } = frame.today;
  const tiles: Tile[] = [
    { id: "unique_users", name: "Visitors today", value: brief(unique_users) },
    { id: "sessions", name: "Sessions today", value: brief(sessions) },
    { id: "pageviews", name: "Pageviews today", value: brief(pageviews) },
    { id: "events", name: "Events today", value: brief(events) },
  ];
  if (readsMoney(session) && revenue !== undefined) tiles.push({ id: "revenue", name: "Revenue today", value: briefMoney(revenue, frame.currency ?? "USD"), hint: counted(orders ?? 0, "order") });
  return (
    <div class={layout.stack}>
      <Card title="Today" isBare>
        <Tiles tiles={tiles} isPlain />
      </Card>
      <div class={css.top}>
        <Card title="Online now">
          <div class={css.online}>
            <div class={css.number} data-figure="users_5m">
              {status === "polling" ? "–" : count(frame.online.users_5m)}
            </div>
            <p class={layout.quiet}>{status === "polling" ? "Needs HTTPS or localhost" : "active in the last 5 minutes"}</p>
          </div>
        </Card>
        <Card title="Last 30 minutes" tools={<span class={layout.quiet}>as of {at(frame.at, timezone, { timeStyle: "medium" })}</span>}>
          {frame.minutes.length ? (
            <Chart
              label="Events by minute"
              kind="bars"
              height={170}
              points={frame.minutes.map(({ minute, events }, index) => ({ name: clock(minute, timezone), tick: clock(minute, timezone), value: events, complete: index < frame.minutes.length - 1 }))}
              format={(value) => counted(value, "event")}
              axis={count}
            />
          ) : (
            <State title="Needs HTTPS or localhost" />
          )}
        </Card>
      </div>
      <div class={layout.two}>
        <TodayCard title="Pages today" dimension={PAGES_OF_SITE[0]!} />
        <TodayCard title="Sources today" dimension={SOURCES[0]!} />
      </div>
      <Card title="Notifications" lead='Events sent with "notify": true, as they arrive.'>
        {notifications.length ? (
          <ul class={css.list} aria-live="polite">
            {notifications.map(({ event_id, name, message, channel, at: time }) => (
              <li key={event_id} class={css.note}>
                <span class={css.time}>{at(time, timezone, { timeStyle: "medium" })}</span>
                <span class={css.name}>
                  {name} {channel && <span class={layout.badge}>{channel}</span>}
                </span>
                {message && <span class={css.message}>{message}</span>}
              </li>
            ))}
          </ul>
        ) : (
          <State title="No notifications yet">
            <p>
              Send an event with <code>"notify": true</code> and it appears here.
            </p>
          </State>
        )}
      </Card>
    </div>
  );
}

function TodayCard({ title, dimension }: { title: string; dimension: Dimension }) {
  const { today } = useScene();
  return (
    <Card title={title}>
      <BreakdownRows dimension={dimension} window={{ start_date: today, end_date: today }} />
    </Card>
  );
}
