// One stream for all tabs, since a browser opens at most six connections to a server. The tab with
// the lock reads the stream and passes it on to the others.

import { useEffect, useState } from "preact/hooks";
import { SHARE } from "../lib/router";
import { Refusal, ask, events } from "./client";
import type { LiveFrame, LiveNotification, Report } from "./types";

export type LiveStatus = "waiting" | "live" | "polling" | "lost" | "refused";

export interface Live {
  status: LiveStatus;
  frame: LiveFrame | null;
  notifications: LiveNotification[];
}

const MOST_NOTIFICATIONS = 50;
/** How often to poll where streams aren't available. */
const POLL_MS = 5_000;
/** How long a hidden tab keeps the stream before it leaves it to others. */
const HIDDEN_MS = 15_000;
/** The delay before a reconnect. */
const RETRY_MS = 2_000;
const NOTHING: Live = { status: "waiting", frame: null, notifications: [] };

type Message = { kind: "state"; live: Live } | { kind: "who" };

class LiveFeed {
  private live = NOTHING;
  private readonly listeners = new Set<(live: Live) => void>();
  private readonly channel: BroadcastChannel | null;
  private stop: (() => void) | null = null;
  private isReader = false;
  private hiddenTimer: ReturnType<typeof setTimeout> | undefined;

  /** Tabs with the same rights share a stream. */
  private readonly name: string;

  constructor(private readonly project: string) {
    this.name = `headcount-live-${SHARE ?? project}`;
    this.channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(this.name);
    this.channel?.addEventListener("message", ({ data }: MessageEvent<Message>) => {
      if (data.kind === "state" && !this.isReader) this.show(data.live);
      if (data.kind === "who" && this.isReader) this.tell();
    });
    document.addEventListener("visibilitychange", () => this.seen());
  }

  listen(listener: (live: Live) => void): () => void {
    this.listeners.add(listener);
    listener(this.live);
    this.seen();
    return () => {
      this.listeners.delete(listener);
      this.seen();
    };
  }

  private seen(): void {
    clearTimeout(this.hiddenTimer);
    if (this.listeners.size && !document.hidden) this.start();
    else if (this.stop) this.hiddenTimer = setTimeout(() => this.end(), document.hidden ? HIDDEN_MS : 0);
  }

  private end(): void {
    this.stop?.();
    this.stop = null;
  }

  private start(): void {
    if (this.stop) return;
    if (!navigator.locks || !this.channel) {
      this.stop = this.poll();
      return;
    }
    const abort = new AbortController();
    this.stop = () => abort.abort();
    this.channel.postMessage({ kind: "who" } satisfies Message);
    const hold = () =>
      new Promise<void>((release) => {
        this.isReader = true;
        const close = this.read();
        abort.signal.addEventListener("abort", () => {
          close();
          this.isReader = false;
          release();
        });
      });
    navigator.locks.request(this.name, { signal: abort.signal }, hold).catch(() => {});
  }

  private read(): () => void {
    const abort = new AbortController();
    void this.follow(abort.signal);
    return () => abort.abort();
  }

  /** Reads the stream, and reconnects when it ends, unless the server refuses it. */
  private async follow(signal: AbortSignal): Promise<void> {
    for (let last = ""; !signal.aborted; ) {
      try {
        for await (const { id, event, data } of events(`/projects/${this.project}/live`, last, signal)) {
          last = id || last;
          if (!this.take(event, JSON.parse(data))) return;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Refusal && !error.isPassing) return this.update({ status: "refused" });
      }
      this.update({ status: "lost" });
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /** Handles an event. Returns whether to go on or reconnect. */
  private take(event: string, data: any): boolean {
    const { frame, notifications } = this.live;
    if (event === "snapshot") this.update({ status: "live", frame: data });
    if (event === "delta" && frame) this.update({ status: "live", frame: { ...frame, ...data } });
    if (event === "notification") {
      const others = notifications.filter(({ event_id }) => event_id !== data.event_id);
      this.update({ notifications: [data, ...others].slice(0, MOST_NOTIFICATIONS) });
    }
    if (event === "bye") this.update({ status: data.reason === "unauthorized" ? "refused" : "lost" });
    return event !== "bye" || data.reason === "drain";
  }

  /** Polls today's figures: over plain http, browsers offer no locks. */
  private poll(): () => void {
    let timer: ReturnType<typeof setTimeout>;
    let isOver = false;
    const run = async () => {
      try {
        const report = await ask<Report>(`/projects/${this.project}/analytics/report`, { ...todayOnly(), interval: "hour" });
        const frame: LiveFrame = { at: new Date().toISOString(), today: report.totals, online: { users_5m: 0 }, minutes: [], currency: report.currency };
        this.update({ status: "polling", frame });
      } catch {
        this.update({ status: "lost" });
      }
      if (!isOver) timer = setTimeout(run, POLL_MS);
    };
    void run();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }

  private update(news: Partial<Live>): void {
    this.show({ ...this.live, ...news });
    if (this.isReader) this.tell();
  }

  private tell(): void {
    this.channel?.postMessage({ kind: "state", live: this.live } satisfies Message);
  }

  private show(live: Live): void {
    this.live = live;
    for (const listener of this.listeners) listener(live);
  }
}

let day = "";

/** Sets today's date in the organization's timezone. */
export function liveDay(today: string): void {
  day = today;
}

const todayOnly = () => ({ start_date: day, end_date: day });

const feeds = new Map<string, LiveFeed>();

/** The live figures of a project. */
export function useLive(project: string | null): Live {
  const [live, setLive] = useState(NOTHING);
  useEffect(() => {
    if (!project) return;
    let feed = feeds.get(project);
    if (!feed) feeds.set(project, (feed = new LiveFeed(project)));
    return feed.listen(setLive);
  }, [project]);
  return live;
}
