import type { JudgedObject } from './change.ts'
import { defineEvent } from './envelope.ts'

/** How a change is delivered to the proxies of one Gateway. */
export interface RolloutPlan {
  /** `namespace/name`. */
  readonly gateway: string
  /** Number of proxies of each step, such as `1`, or their share, such as `25%`. */
  readonly steps: readonly (number | string)[]
  readonly holdSeconds: number
  /** Figures that are compared. */
  readonly analysis: readonly (
    | 'Errors'
    | 'Refusals'
    | 'ClientErrors'
    | 'Latency'
    | 'Resets'
    | 'Guards'
    | 'Costs'
  )[]
}

export interface RolloutStartedData {
  readonly objects: readonly JudgedObject[]
  readonly plans: readonly RolloutPlan[]
}

export const rolloutStarted = defineEvent<RolloutStartedData>()({
  name: 'RolloutStarted',
  type: 'dev.sluice.rollout.started.v1',
  version: 1,
  about:
    'A change is delivered in steps. No proxy gets it before the first RolloutStepped event. Without an event RolloutEnded, it is in force only at the proxies that the newest step names.',
  fields: {
    objects: 'The objects of the change. An object without `resourceVersion` was deleted.',
    plans: 'The Gateways whose proxies get the change in steps, and those steps.',
  },
})

export interface RolloutSkippedData {
  readonly objects: readonly JudgedObject[]
}

export const rolloutSkipped = defineEvent<RolloutSkippedData>()({
  name: 'RolloutSkipped',
  type: 'dev.sluice.rollout.skipped.v1',
  version: 1,
  about: 'A change takes effect at once, because it changes nothing that is delivered in steps.',
  fields: { objects: 'The objects of the change, if no newer version of them was observed.' },
})

export interface RolloutSteppedData {
  readonly rollout: number
  readonly step: number
  readonly proxies: readonly string[]
}

export const rolloutStepped = defineEvent<RolloutSteppedData>()({
  name: 'RolloutStepped',
  type: 'dev.sluice.rollout.stepped.v1',
  version: 1,
  about:
    'A rollout has reached a step, or chose other proxies for it because some are gone. The named proxies get the change, all others the versions in force.',
  fields: {
    rollout: 'Position of the RolloutStarted event.',
    step: 'Number of the step, from 1.',
    proxies:
      'Names of the proxies; workers of `sluice run` are named by the proxy and their number, such as `local/0`.',
  },
})

export interface RolloutPausedData {
  readonly rollout: number
  readonly reason: string
  readonly author?: string
}

export const rolloutPaused = defineEvent<RolloutPausedData>()({
  name: 'RolloutPaused',
  type: 'dev.sluice.rollout.paused.v1',
  version: 1,
  about: 'A rollout stays at its step until an operator resumes or ends it.',
  fields: {
    rollout: 'Position of the RolloutStarted event.',
    reason: 'Why it is paused.',
    author: 'Operator; omitted if the gateway has paused it.',
  },
})

export interface RolloutResumedData {
  readonly rollout: number
  readonly reason: string
  readonly author: string
}

export const rolloutResumed = defineEvent<RolloutResumedData>()({
  name: 'RolloutResumed',
  type: 'dev.sluice.rollout.resumed.v1',
  version: 1,
  about: 'An operator resumed a paused rollout. The step begins again.',
  fields: {
    rollout: 'Position of the RolloutStarted event.',
    reason: 'The reason that the operator gave.',
    author: 'Operator.',
  },
})

export interface RolloutEndedData {
  readonly rollout: number
  readonly outcome: 'Finished' | 'RolledBack'
  readonly reason: string
  readonly author?: string
}

export const rolloutEnded = defineEvent<RolloutEndedData>()({
  name: 'RolloutEnded',
  type: 'dev.sluice.rollout.ended.v1',
  version: 1,
  about:
    'A rollout is finished, and its change takes effect at all proxies; or it is rolled back, and no proxy has it any more. A change that was rolled back waits until its manifests change again, or until an operator finishes it.',
  fields: {
    rollout: 'Position of the RolloutStarted event.',
    outcome: '`Finished` or `RolledBack`.',
    reason: 'Why it has ended.',
    author: 'Operator; omitted if the gateway has ended it.',
  },
})
