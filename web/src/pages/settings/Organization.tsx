import { useState } from "preact/hooks";
import { change } from "../../api/client";
import type { Organization } from "../../api/types";
import { useAnswer } from "../../api/use";
import { Create, useAction } from "../../parts/Action";
import { Answered, Card } from "../../parts/Card";
import { Input } from "../../parts/Form";
import layout from "../layout.module.css";

export function OrganizationSettings() {
  const answer = useAnswer<Organization>("/organization");
  return (
    <Answered answer={answer} height={300}>
      {(organization) => (
        <div class={layout.stack}>
          <Main key={organization.name} organization={organization} />
          <Rates key={JSON.stringify(organization.fx_rates)} rates={organization.fx_rates} />
        </div>
      )}
    </Answered>
  );
}

function Main({ organization }: { organization: Organization }) {
  const [name, setName] = useState(organization.name);
  const action = useAction(async () => {
    await change("PATCH", "/organization", { name });
  });
  return (
    <Card title="Organization" lead={`Times are in ${organization.timezone}. Figures across projects are in ${organization.currency}.`}>
      <Create verb="Save" action={action} onSubmit={action.run}>
        <Input label="Name" value={name} onText={setName} required maxLength={200} />
      </Create>
    </Card>
  );
}

/** Exchange rates, edited as one text. */
function Rates({ rates }: { rates: Record<string, number> }) {
  const [text, setText] = useState(Object.entries(rates).map(([code, rate]) => `${code} ${rate}`).join(", "));
  const action = useAction(async () => {
    const entries = text.split(",").map((part) => part.trim().split(/[\s=:]+/)).filter(([code]) => code);
    await change("PATCH", "/organization", { fx_rates: Object.fromEntries(entries.map(([code, rate]) => [code!.toUpperCase(), Number(rate)])) });
  });
  return (
    <Card title="Exchange rates" lead="The value of one unit of each currency in USD. Changes apply to new events; recorded events keep their rates.">
      <Create verb="Save rates" action={action} onSubmit={action.run}>
        <Input label="Rates" value={text} onText={setText} placeholder="EUR 1.08, GBP 1.27" />
      </Create>
    </Card>
  );
}
