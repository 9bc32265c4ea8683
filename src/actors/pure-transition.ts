/**
 * xstate's pure transition, for machines that are stepped once for each event of a long log. Its own
 * `transition` makes an actor at every step, which runs the machine's beginning and costs as much as
 * the step; a machine that starts nothing and sends nothing never looks at it, so one serves for all.
 */
import { type AnyStateMachine, createActor, type EventFrom, type SnapshotFrom } from 'xstate'

/**
 * The step function of a machine whose only actions are assignments: what else it asks for is not
 * told, and would be lost.
 */
export function stepOf<Machine extends AnyStateMachine>(
  machine: Machine,
): (snapshot: SnapshotFrom<Machine>, event: EventFrom<Machine>) => SnapshotFrom<Machine> {
  const nothing = () => undefined
  const self = createActor(machine)
  const scope = {
    self,
    id: '',
    sessionId: '',
    system: self.system,
    logger: nothing,
    defer: nothing,
    stopChild: nothing,
    emit: nothing,
    actionExecutor: nothing,
  }
  return (snapshot, event) => machine.transition(snapshot, event, scope) as SnapshotFrom<Machine>
}
