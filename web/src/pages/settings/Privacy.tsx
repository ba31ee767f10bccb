import { useState } from "preact/hooks";
import { change } from "../../api/client";
import type { PrivacyRequest } from "../../api/types";
import { useScene } from "../../context";
import { moment } from "../../lib/format";
import { Confirm, Create, useAction } from "../../parts/Action";
import { buttons } from "../../parts/Card";
import { Input, Select } from "../../parts/Form";
import layout from "../layout.module.css";
import { Resource } from "./Resource";

const KINDS: [string, string][] = [
  ["export", "Export everything recorded"],
  ["erasure", "Erase from all figures"],
];
const TYPES: Record<string, string> = { export: "export", erasure: "erasure", opt_in: "opt-in" };
const SUBJECTS: [string, string][] = [
  ["email", "E-mail"],
  ["user_id", "User ID"],
];

const subjectOf = ({ subject }: PrivacyRequest) => subject.email ?? subject.user_id ?? subject.anonymous_id ?? "";

export function Privacy() {
  const { timezone } = useScene();
  return (
    <Resource<PrivacyRequest>
      title="Privacy requests"
      lead="Export or erase everything recorded about one person."
      path="/privacy-requests"
      list="privacy_requests"
      empty="No privacy requests"
      columns={[
        { name: "Person", value: subjectOf, show: (row) => <span class={layout.strong}>{subjectOf(row)}</span> },
        { name: "Type", value: ({ type }) => type, show: ({ type }) => TYPES[type] ?? type },
        { name: "Status", value: ({ status }) => status, show: ({ status }) => <span class={layout.badge}>{status}</span> },
        { name: "Requested", value: ({ created_at }) => created_at, show: ({ created_at }) => moment(created_at, timezone), isNumber: true },
        {
          name: "File",
          value: ({ download_available }) => download_available,
          show: ({ id, download_available }) =>
            download_available ? (
              <a class={buttons.plain} href={`/privacy-requests/${id}/download`} download={`${id}.json`}>
                Download
              </a>
            ) : (
              "–"
            ),
          isNumber: true,
        },
      ]}
    >
      <NewRequest />
    </Resource>
  );
}

function NewRequest() {
  const [type, setType] = useState("export");
  const [by, setBy] = useState("email");
  const [who, setWho] = useState("");
  const [isAsking, setAsking] = useState(false);
  const send = async () => {
    await change("POST", "/privacy-requests", { type, [by]: who });
    setWho("");
  };
  const action = useAction(send);
  return (
    <>
      <Create verb="Send request" action={action} onSubmit={() => (type === "erasure" ? setAsking(true) : void action.run())}>
        <Select label="Type" value={type} options={KINDS} onSelect={setType} />
        <Select label="Identify by" value={by} options={SUBJECTS} onSelect={setBy} />
        <Input label={SUBJECTS.find(([id]) => id === by)![1]} value={who} onText={setWho} required />
      </Create>
      {isAsking && (
        <Confirm title="Erase" text={`This permanently removes everything recorded about ${who} from all figures. Their future events are dropped.`} onClose={() => setAsking(false)} run={send} />
      )}
    </>
  );
}
