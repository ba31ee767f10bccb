import { useEffect, useRef, useState } from "preact/hooks";
import { useGoalNames } from "../api/definitions";
import { useScene } from "../context";
import { useDelayed } from "../lib/delayed";
import { FIELDS, clauseText, type Clause } from "../lib/filters";
import { LEVELS, MOST_STEPS, ORDERS, UNITS, kindOf, lengthOf, mostOf, stepName, stepsOf, writeStep, type FunnelQuestion, type Step, type Unit } from "../lib/funnel";
import { setQuery } from "../lib/router";
import { Tool, buttons } from "../parts/Card";
import { Chip, Chips } from "../parts/Chip";
import { EventPicker } from "../parts/EventPicker";
import { FilterForm } from "../parts/FilterForm";
import { Input, Select, form } from "../parts/Form";
import { Icon } from "../parts/Icon";
import layout from "./layout.module.css";
import css from "./Funnels.module.css";

const EMPTY: Step = { event_name: "" };

/** The steps of the URL, and incomplete ones. The URL follows once you stop typing. If it changes by itself, `onOther` runs. */
function useSteps(onOther: () => void): [Step[], (steps: Step[]) => void] {
  const { query } = useScene();
  const written = query.getAll("s").join("\n");
  const padded = () => [...stepsOf(query), EMPTY, EMPTY].slice(0, Math.max(2, stepsOf(query).length));
  const [steps, setSteps] = useState(padded);
  const own = useRef(written);
  useEffect(() => {
    if (written === own.current) return;
    own.current = written;
    setSteps(padded());
    onOther();
  }, [written]);
  const settled = useDelayed(steps, 400);
  useEffect(() => {
    const texts = settled.filter((step) => step[kindOf(step)]).map(writeStep);
    if (settled !== steps || texts.join("\n") === own.current) return;
    own.current = texts.join("\n");
    setQuery({ s: texts }, true);
  }, [settled]);
  return [steps, setSteps];
}

export function FunnelSteps({ funnel }: { funnel: FunnelQuestion }) {
  const [edited, setEdited] = useState<number | null>(null);
  const [steps, setSteps] = useSteps(() => setEdited(null));
  const goals = useGoalNames();
  const replace = (index: number, step: Step) => setSteps(steps.with(index, step));
  // The details stay open at their place, so moves and removals close them.
  const arrange = (steps: Step[]) => {
    setEdited(null);
    setSteps(steps);
  };
  const move = (index: number, by: number) => arrange(steps.with(index, steps[index + by]!).with(index + by, steps[index]!));
  return (
    <div class={form.form}>
      <ol class={css.steps}>
        {steps.map((step, index) => (
          <li key={index} class={css.step}>
            <fieldset class={css.fields}>
              <legend class={css.number}>Step {index + 1}</legend>
              <div class={css.pickers}>
                <EventPicker label="What" goals={goals} kind={kindOf(step)} value={step[kindOf(step)] ?? ""} onPick={({ kind, value }) => replace(index, { ...without(step, kindOf(step)), [kind]: value })} />
              </div>
              <div class={css.tools}>
                <Tool icon="edit" label={`Name and filters of step ${index + 1}`} pressed={edited === index} onClick={() => setEdited(edited === index ? null : index)} />
                {index > 0 && <Tool icon="up" label={`Move step ${index + 1} up`} onClick={() => move(index, -1)} />}
                {steps.length > 2 && <Tool icon="close" label={`Remove step ${index + 1}`} onClick={() => arrange(steps.toSpliced(index, 1))} />}
              </div>
            </fieldset>
            {edited === index ? <StepDetails step={step} number={index + 1} placeholder={stepName({ ...step, name: undefined }, goals)} onChange={(step) => replace(index, step)} /> : <StepNote step={step} />}
          </li>
        ))}
      </ol>
      <div>
        <button type="button" class={buttons.plain} disabled={steps.length >= MOST_STEPS} onClick={() => setSteps([...steps, EMPTY])}>
          <Icon name="plus" size={14} />
          Add step
        </button>
      </div>
      <Rules {...funnel} />
    </div>
  );
}

/** The name and the filters of a step that has some. */
function StepNote({ step: { name, filters = [] } }: { step: Step }) {
  const texts = [...(name ? [`Named “${name}”`] : []), ...(filters.length ? [`Only where ${filters.map(clauseText).join(" and ")}`] : [])];
  return texts.length ? <p class={`${layout.quiet} ${css.details}`}>{texts.join(". ")}</p> : null;
}

function StepDetails({ step, number, placeholder, onChange }: { step: Step; number: number; placeholder: string; onChange: (step: Step) => void }) {
  const filters = step.filters ?? [];
  const setFilters = (filters: Clause[]) => onChange({ ...without(step, "filters"), ...(filters.length && { filters }) });
  return (
    <div class={`${form.form} ${css.details}`}>
      <Input label={`Name of step ${number}`} value={step.name ?? ""} onText={(name) => onChange({ ...without(step, "name"), ...(name && { name }) })} placeholder={placeholder} maxLength={200} />
      {filters.length ? (
        <Chips label={`Filters of step ${number}`}>
          {filters.map((clause, index) => (
            <Chip key={clauseText(clause)} label={`Remove: ${clauseText(clause)}`} onRemove={() => setFilters(filters.toSpliced(index, 1))}>
              {clauseText(clause)}
            </Chip>
          ))}
        </Chips>
      ) : null}
      <FilterForm onAdd={(filter) => setFilters([...filters.filter((clause) => clauseText(clause) !== clauseText(filter)), filter])} />
    </div>
  );
}

function without(step: Step, name: keyof Step): Step {
  const { [name]: _, ...rest } = step;
  return rest;
}

function Rules({ within, order, level, breakdown }: FunnelQuestion) {
  const { unit, number } = lengthOf(within);
  const setLength = (unit: string, number: number) => {
    const text = unit === "session" ? unit : `${Math.min(number, mostOf(unit as Unit))}${unit}`;
    setQuery({ within: text === "7days" ? null : text }, true);
  };
  // The first option is the default, which the URL leaves out.
  const choose = (name: string, options: [string, string][]) => (value: string) => setQuery({ [name]: value === options[0]![0] ? null : value }, true);
  const fields: [string, string][] = [["", "Nothing"], ...Object.entries(FIELDS)];
  return (
    <div class={form.row}>
      <Select label="Order" value={order!} options={ORDERS} onSelect={choose("order", ORDERS)} />
      {unit !== "session" && <Input label="Within" type="number" min={1} max={mostOf(unit)} required value={number} onText={(text) => /^[1-9]\d*$/.test(text) && setLength(unit, Number(text))} />}
      <Select label={unit === "session" ? "Within" : "Unit"} value={unit} options={UNITS} onSelect={(unit) => setLength(unit, number)} />
      <Select label="Count" value={level!} options={LEVELS} onSelect={choose("level", LEVELS)} />
      <Select label="Break down by" value={breakdown ?? ""} options={fields} onSelect={choose("breakdown", fields)} />
    </div>
  );
}
