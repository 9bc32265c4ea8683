/**
 * The actor of one rollout: a change that is delivered to a part of the proxies before it is in force.
 *
 * ```
 *              STEPPED (the first)        PAUSED
 *   started ──────────────► progressing ◄────────► paused
 *      │                        │  ▲ │ RESUMED        │
 *      │                        │  └─┘ STEPPED        │
 *      └────────────────────────┴── ROLLED_BACK ──────┴──► rolledBack
 * ```
 *
 * A rollout that is finished, or whose objects have changed again, has no actor.
 */
import { assign, setup } from 'xstate'
import type { RolloutPlan } from '../../../events/index.ts'
import { type ActorSnapshot, createStep } from './step.ts'

/** Proxies that have the change from an event on. */
export interface RolloutStep {
  /** From 1. */
  readonly number: number
  readonly proxies: readonly string[]
  /** Time of the event (RFC 3339). */
  readonly since: string
  /** Position of the event. The proxies have the change in force once they have acknowledged it. */
  readonly position: number
}

interface Context {
  /** Position of the RolloutStarted event, by which operators name the rollout. */
  readonly position: number
  /** Time of that event (RFC 3339). */
  readonly since: string
  readonly plans: readonly RolloutPlan[]
  /** The newest steps, oldest first; empty before the first step. */
  readonly steps: readonly RolloutStep[]
  /** Why it is paused or was rolled back; not set otherwise. */
  readonly reason?: string | undefined
  /** Who did that; not set if the gateway did. */
  readonly author?: string | undefined
}

export type RolloutInput =
  | { readonly type: 'STEPPED'; readonly step: RolloutStep }
  | { readonly type: 'RESUMED'; readonly since: string }
  | { readonly type: 'PAUSED'; readonly reason: string; readonly author?: string | undefined }
  | { readonly type: 'ROLLED_BACK'; readonly reason: string; readonly author?: string | undefined }

/** Maximum number of steps that are kept. There are more if chosen proxies are replaced very often. */
const maxSteps = 64

const none = { reason: undefined, author: undefined }

const step = { target: 'progressing', guard: 'goesOn', actions: 'takeStep' } as const
const pause = { target: 'paused', actions: 'takeReason' } as const
const rollBack = { target: 'rolledBack', actions: 'takeReason' } as const

/** @internal */
export const rolloutMachine = setup({
  types: { context: {} as Context, events: {} as RolloutInput },
  guards: {
    /** A step never goes back, also if events of two leaders cross. */
    goesOn: ({ context, event }) =>
      event.type === 'STEPPED' && event.step.number >= (context.steps.at(-1)?.number ?? 1),
  },
  actions: {
    takeStep: assign(({ context, event }) =>
      event.type === 'STEPPED' ? { steps: [...context.steps, event.step].slice(-maxSteps) } : {},
    ),
    takeReason: assign(({ event }) =>
      event.type === 'PAUSED' || event.type === 'ROLLED_BACK'
        ? { reason: event.reason, author: event.author }
        : {},
    ),
    /** The step begins again. */
    repeatStep: assign(({ context, event }) => {
      const last = context.steps.at(-1)
      if (event.type !== 'RESUMED' || last === undefined) return none
      return {
        steps: [...context.steps, { ...last, since: event.since }].slice(-maxSteps),
        ...none,
      }
    }),
  },
}).createMachine({
  id: 'rollout',
  context: { position: 0, since: '', plans: [], steps: [] },
  initial: 'started',
  states: {
    started: { on: { STEPPED: step, ROLLED_BACK: rollBack } },
    progressing: { on: { STEPPED: step, PAUSED: pause, ROLLED_BACK: rollBack } },
    paused: {
      on: {
        // A replacement may have been decided before the pause.
        STEPPED: { target: 'paused', guard: 'goesOn', actions: 'takeStep' },
        RESUMED: { target: 'progressing', actions: 'repeatStep' },
        ROLLED_BACK: rollBack,
      },
    },
    rolledBack: {},
  },
})

export type RolloutSnapshot = ActorSnapshot<
  'started' | 'progressing' | 'paused' | 'rolledBack',
  Context
>

export const startedRollout = (
  position: number,
  since: string,
  plans: readonly RolloutPlan[],
): RolloutSnapshot => ({ value: 'started', context: { position, since, plans, steps: [] } })

/** The next snapshot of a rollout's actor. */
export const nextRollout = createStep<RolloutSnapshot['value'], Context, RolloutInput>(
  rolloutMachine,
)
