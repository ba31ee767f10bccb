import { useState } from "preact/hooks";
import { change } from "../../api/client";
import { useScene } from "../../context";
import { dayAt } from "../../lib/format";
import { Create, useAction } from "../../parts/Action";
import { buttons } from "../../parts/Card";
import { FormError, Input, Select, form } from "../../parts/Form";
import layout from "../layout.module.css";
import { Resource } from "./Resource";

type Kind = "slack" | "discord" | "teams" | "telegram";

interface Channel {
  channel_id: string;
  name: string;
  kind: Kind;
  target: string;
  created_at: string;
}

interface Tested {
  delivered: boolean;
  status: number | null;
  error: string | null;
}

const KINDS: [Kind, string][] = [
  ["slack", "Slack"],
  ["discord", "Discord"],
  ["teams", "Microsoft Teams"],
  ["telegram", "Telegram"],
];

/** What the URL is, by kind. */
const URLS: Record<Exclude<Kind, "telegram">, string> = {
  slack: "The URL of an incoming webhook.",
  discord: "The URL of a webhook of the channel.",
  teams: "The URL of a workflow that posts to the channel when a webhook request is received.",
};

const kindName = (kind: Kind) => KINDS.find(([id]) => id === kind)?.[1] ?? kind;

export function Channels() {
  const { timezone } = useScene();
  return (
    <Resource<Channel>
      title="Channels"
      lead="A channel is a chat that takes messages. Its URL or token is encrypted, and never shown again. So far, headcount sends only tests."
      path="/channels"
      list="channels"
      empty="No channels"
      columns={[
        { name: "Name", value: ({ name }) => name, show: ({ name }) => <span class={layout.strong}>{name}</span> },
        { name: "Kind", value: ({ kind }) => kindName(kind) },
        { name: "Sends to", value: ({ target }) => target, show: ({ target }) => <code class={layout.mono}>{target}</code> },
        { name: "Created", value: ({ created_at }) => created_at, show: ({ created_at }) => dayAt(created_at, timezone), isNumber: true },
        { name: "Test", isUnnamed: true, value: () => "", show: (channel) => <Test key={channel.channel_id} channel={channel} /> },
      ]}
      remove={{
        verb: "Delete",
        warning: ({ name }) => `${name} gets no more messages.`,
        run: ({ channel_id }) => change("DELETE", `/channels/${channel_id}`),
      }}
    >
      <NewChannel />
    </Resource>
  );
}

function outcome({ delivered, status, error }: Tested): string {
  if (delivered) return "Delivered";
  return status ? `Refused: the chat answered ${status}` : `No answer: ${error}`;
}

function Test({ channel }: { channel: Channel }) {
  const [tested, setTested] = useState<Tested>();
  const action = useAction(async () => {
    setTested(undefined);
    setTested(await change<Tested>("POST", `/channels/${channel.channel_id}/test`, {}));
  });
  return (
    <div class={form.actions}>
      <button type="button" class={buttons.plain} disabled={action.isBusy} aria-label={`Send a test to ${channel.name}`} onClick={() => action.run()}>
        {action.isBusy ? "Sending…" : "Send a test"}
      </button>
      <span role="status">{tested && outcome(tested)}</span>
      <FormError>{action.error}</FormError>
    </div>
  );
}

function NewChannel() {
  const [name, setName] = useState("");
  const [kind, setKind] = useState<Kind>("slack");
  const [url, setUrl] = useState("");
  const [token, setToken] = useState("");
  const [chat, setChat] = useState("");
  const action = useAction(async () => {
    const destination = kind === "telegram" ? { bot_token: token, chat_id: chat } : { url };
    await change("POST", "/channels", { name, kind, ...destination });
    [setName, setUrl, setToken, setChat].forEach((set) => set(""));
  });
  return (
    <Create verb="Add channel" action={action} onSubmit={action.run}>
      <Input label="Name" value={name} onText={setName} required maxLength={200} placeholder="Growth" />
      <Select label="Kind" value={kind} options={KINDS} onSelect={(chosen) => setKind(chosen as Kind)} />
      {kind === "telegram" ? (
        <>
          <Input label="Bot token" type="password" autocomplete="off" value={token} onText={setToken} required maxLength={2048} hint="BotFather gives it to you when you make a bot. Add the bot to the chat." />
          <Input label="Chat ID" value={chat} onText={setChat} required maxLength={100} placeholder="-1001234567890" />
        </>
      ) : (
        <Input label="URL" type="url" autocomplete="off" value={url} onText={setUrl} required maxLength={2048} placeholder="https://" hint={URLS[kind]} />
      )}
    </Create>
  );
}
