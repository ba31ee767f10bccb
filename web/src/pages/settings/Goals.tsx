import { change } from "../../api/client";
import type { Goal } from "../../api/types";
import { useScene } from "../../context";
import { clauseText } from "../../lib/filters";
import { dayAt } from "../../lib/format";
import { GoalDialog, MakeGoal } from "../../parts/GoalDialog";
import layout from "../layout.module.css";
import { Resource } from "./Resource";

export function Goals() {
  const { project, timezone } = useScene();
  const path = `/projects/${project}/goals`;
  return (
    <Resource<Goal>
      title="Goals"
      lead="A goal is an event or a page that you want people to reach. Its figures cover all recorded events, not only those after you made it."
      path={path}
      list="goals"
      empty="No goals yet"
      columns={[
        { name: "Name", value: ({ name }) => name, show: ({ name }) => <span class={layout.strong}>{name}</span> },
        {
          name: "Reached by",
          value: fits,
          show: (goal) => (
            <>
              {fits(goal)}
              {goal.filters.length > 0 && <span class={layout.sub}>{goal.filters.map(clauseText).join(" and ")}</span>}
            </>
          ),
        },
        { name: "Created", value: ({ created_at }) => created_at, show: ({ created_at }) => dayAt(created_at, timezone), isNumber: true },
      ]}
      edit={(goal, close) => <GoalDialog goal={goal} onClose={close} />}
      remove={{
        verb: "Delete",
        warning: ({ name }) => `This deletes the goal ${name}. Recorded events stay. Segments that use it stop working.`,
        run: ({ goal_id }) => change("DELETE", `${path}/${goal_id}`),
      }}
    >
      <MakeGoal />
    </Resource>
  );
}

const fits = ({ event_name, page }: Goal) => (page === null ? `event ${event_name}` : `page ${page}`);
