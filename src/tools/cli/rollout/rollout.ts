/** `sluice rollout`: what is delivered in steps, and decisions about it, which are events in the log. */
import { randomUUID } from 'node:crypto'
import {
  type EventDefinition,
  rolloutEnded,
  rolloutPaused,
  rolloutResumed,
  type SluiceEvent,
} from '../../../../events/index.ts'
import type { RolloutSnapshot } from '../../../control/actors/rollout.machine.ts'
import { newEvent } from '../../../control/log/index.ts'
import { type ObjectRef, objectText, parseObjectKey } from '../../../ground/model/names.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { changeLog, type LogPlace } from '../recording/change-log.ts'
import { type OperatorChange, signed, waitForGateways } from '../recording/operator-change.ts'
import { readState } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'

type Report = Output['report']
export type RolloutOptions = OperatorChange
export type Verb = 'pause' | 'resume' | 'abort' | 'finish'

interface Decision {
  /** Whether it changes what proxies get. */
  readonly changesProxies?: true
  /** States of a rollout in which this decision is possible. */
  readonly from: readonly RolloutSnapshot['value'][]
  readonly done: string
  readonly event: (data: {
    readonly rollout: number
    readonly reason: string
    readonly author: string
  }) => SluiceEvent
}

const writer = { source: '/sluice/rollout', epoch: 0 } as const
const subject = { kind: 'Desired', name: 'rollout' }

const eventOf = <Type extends SluiceEvent['type'], Data>(
  definition: EventDefinition<Type, Data>,
  data: Data,
): SluiceEvent => newEvent(definition, writer, subject, { id: randomUUID(), data }) as never

const decisions: Readonly<Record<Verb, Decision>> = {
  pause: {
    from: ['progressing'],
    done: 'is paused',
    event: (data) => eventOf(rolloutPaused, data),
  },
  resume: {
    from: ['paused'],
    done: 'continues',
    event: (data) => eventOf(rolloutResumed, data),
  },
  abort: {
    changesProxies: true,
    from: ['started', 'progressing', 'paused'],
    done: 'is rolled back',
    event: (data) => eventOf(rolloutEnded, { ...data, outcome: 'RolledBack' }),
  },
  finish: {
    changesProxies: true,
    from: ['started', 'progressing', 'paused', 'rolledBack'],
    done: 'is finished; all proxies get the change',
    event: (data) => eventOf(rolloutEnded, { ...data, outcome: 'Finished' }),
  },
}

export async function decideRollout(
  verb: Verb,
  position: string | undefined,
  options: RolloutOptions,
  report: Report,
): Promise<CommandResult> {
  const about = signed(options)
  const { from, done, event, changesProxies } = decisions[verb]
  let served = ''
  const { rollout, objects } = await changeLog(
    options,
    report,
    (fold) => {
      const { value, context } = rolloutAt(fold, position)
      if (!from.includes(value)) {
        throw new UsageError(
          `rollout ${context.position} is ${stateText[value]}: it cannot be ${participles[verb]}`,
        )
      }
      const result = { rollout: context.position, objects: objectsOf(fold, context.position) }
      return { events: [event({ rollout: context.position, ...about })], result }
    },
    async ({ fold }, readOn) => {
      if (changesProxies) served = await waitForGateways(fold, readOn)
    },
  )
  return {
    text: () => [
      `rollout ${rollout} ${done}`,
      ...objects.map(objectText),
      ...(changesProxies ? [served] : []),
    ],
    json: { rollout, objects, ...about, ...(changesProxies && { served }) },
  }
}

const stateText: Readonly<Record<RolloutSnapshot['value'], string>> = {
  started: 'not at its first step yet',
  progressing: 'under way',
  paused: 'paused',
  rolledBack: 'rolled back',
}

const participles: Readonly<Record<Verb, string>> = {
  pause: 'paused',
  resume: 'resumed',
  abort: 'aborted',
  finish: 'finished',
}

/** @throws UsageError if there is no such rollout */
function rolloutAt({ rollouts }: Fold, position: string | undefined): RolloutSnapshot {
  const found = position === undefined ? rollouts.running : rollouts.rollouts.get(Number(position))
  if (found !== undefined) return found
  const known = [...rollouts.rollouts.keys()]
  const hint = known.length === 0 ? 'there are none' : known.join(', ')
  const what =
    position === undefined
      ? 'no rollout is under way'
      : `rollout ${position} is neither under way nor rolled back: it is finished, a newer version has ended it, or it does not exist`
  throw new UsageError(`${what}. Rollouts under way or rolled back: ${hint}`)
}

const objectsOf = ({ rollouts }: Fold, position: number): ObjectRef[] =>
  rollouts.objectsOf(position).map(parseObjectKey)

/** The rollouts that are not finished. The exit code is 1 if there are none. */
export async function shownRollouts(
  position: string | undefined,
  options: LogPlace,
  report: Report,
): Promise<CommandResult> {
  const { fold } = await readState(options, report)
  const all =
    position === undefined ? [...fold.rollouts.rollouts.values()] : [rolloutAt(fold, position)]
  const rollouts = all.map(({ value, context }) => ({
    state: value,
    ...context,
    objects: objectsOf(fold, context.position),
  }))
  const waiting = [...fold.rollouts.waiting].flatMap(([key, { rollout }]) =>
    rollout === undefined ? [parseObjectKey(key)] : [],
  )
  const isNothing = rollouts.length + waiting.length === 0
  return {
    text: () => [
      ...(isNothing ? ['nothing is delivered in steps'] : rollouts.flatMap(linesOf)),
      ...(waiting.length === 0 ? [] : ['waiting:', ...waiting.map(indented)]),
    ],
    json: { rollouts, waiting },
    ...(isNothing && { exitCode: exitCode.negative }),
  }
}

const indented = (ref: ObjectRef): string => `  ${objectText(ref)}`

function linesOf({
  state,
  position,
  since,
  plans,
  steps,
  objects,
  reason,
  author,
}: RolloutSnapshot['context'] & {
  readonly state: RolloutSnapshot['value']
  readonly objects: readonly ObjectRef[]
}): string[] {
  const by = author === undefined ? '' : ` by ${author}`
  const last = steps.at(-1)
  return [
    `rollout ${position}, since ${since}: ${stateText[state]}${by}${reason === undefined ? '' : `: ${reason}`}`,
    ...objects.map(indented),
    ...plans.map(
      (plan) =>
        `  Gateway ${plan.gateway}: steps ${plan.steps.join(', ')}; hold ${plan.holdSeconds} s`,
    ),
    ...(last === undefined || state === 'rolledBack'
      ? []
      : [`  step ${last.number} since ${last.since}: ${last.proxies.join(', ')}`]),
    ...hints(state, position),
  ]
}

const hints = (state: RolloutSnapshot['value'], position: number): string[] =>
  (Object.keys(decisions) as Verb[])
    .filter((verb) => decisions[verb].from.includes(state))
    .map((verb) => `  ${verb} it with: sluice rollout ${verb} ${position} --reason …`)
