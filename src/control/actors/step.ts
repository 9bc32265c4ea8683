import type { AnyStateMachine } from 'xstate'

/** The state of an actor, as xstate persists it. */
export interface ActorSnapshot<Value extends string, Context> {
  readonly value: Value
  readonly context: Context
}

interface Transition {
  readonly target?: string
  readonly guard?: string
  readonly actions?: string
}

type WrittenState = { readonly on?: Readonly<Record<string, string | Transition>> }

type ActionScope = { readonly context: unknown; readonly event: unknown }
type Guard = (scope: ActionScope) => boolean
/** `assignment` is the parameter of xstate's `assign`. */
type Action = { readonly assignment?: object | ((scope: ActionScope) => object) }

interface CompiledTransition {
  readonly target: string | undefined
  readonly guard: Guard | undefined
  readonly assignment: Action['assignment']
}

/**
 * Makes the step function of a machine. xstate's own `transition` creates an actor and a snapshot with
 * methods at every step, which makes a whole replay take 42 % more CPU time (ADR 15). Supports what a pure
 * machine needs: flat states whose transitions have at most a target, a named guard and a named `assign`.
 *
 * @internal
 * @throws if the machine has anything else
 */
export function createStep<Value extends string, Context, Event extends { readonly type: string }>(
  machine: AnyStateMachine,
) {
  const states = new Map<string, ReadonlyMap<string, CompiledTransition>>(
    Object.entries(machine.config.states ?? {}).map(([state, written]) => [
      state,
      stepsOf(written as WrittenState, machine),
    ]),
  )
  return (snapshot: ActorSnapshot<Value, Context>, event: Event): ActorSnapshot<Value, Context> => {
    const { value, context } = snapshot
    const step = states.get(value)?.get(event.type)
    if (step === undefined) return snapshot
    const { target = value, guard, assignment } = step
    const scope = { context, event }
    if (guard?.(scope) === false) return snapshot
    const assigned = typeof assignment === 'function' ? assignment(scope) : assignment
    const hasChanged = assigned !== undefined && Object.keys(assigned).length > 0
    if (!hasChanged && target === value) return snapshot
    return { value: target as Value, context: hasChanged ? { ...context, ...assigned } : context }
  }
}

function stepsOf({ on = {}, ...rest }: WrittenState, machine: AnyStateMachine) {
  assertNothingElse(rest)
  return new Map(
    Object.entries(on).map(([event, written]) => [
      event,
      stepOf(typeof written === 'string' ? { target: written } : written, machine),
    ]),
  )
}

function stepOf(
  { target, guard, actions, ...rest }: Transition,
  machine: AnyStateMachine,
): CompiledTransition {
  assertNothingElse(rest)
  const { guards, actions: known } = machine.implementations
  return {
    target,
    guard: guard === undefined ? undefined : named<Guard>(guards, guard),
    assignment:
      actions === undefined ? undefined : named<Required<Action>>(known, actions).assignment,
  }
}

function named<Found>(found: object, name: string): Found {
  const value = (found as Readonly<Record<string, Found | undefined>>)[name]
  if (value === undefined) throw new Error(`${name} is not defined in the machine`)
  return value
}

function assertNothingElse(rest: object): void {
  const [key] = Object.keys(rest)
  if (key !== undefined) throw new Error(`no step can be made of a machine with ${key}`)
}
