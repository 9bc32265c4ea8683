import { apiKeysChanged } from './api-keys.ts'
import {
  budgetAdjusted,
  budgetCharged,
  budgetClosed,
  budgetDefined,
  budgetErased,
  budgetGranted,
  budgetNotified,
  budgetOpened,
  budgetRecalled,
  budgetReleased,
  budgetRenamed,
  budgetWarned,
} from './budget.ts'
import {
  changeApproved,
  changeHeld,
  changePassed,
  changeRejected,
  protectionSet,
} from './change.ts'
import { conditionsDecided, desiredPublished } from './decision.ts'
import { definitionsObserved } from './definition.ts'
import { configAcked, configRejected, proxyConnected, proxyDisconnected } from './delivery.ts'
import { deploymentApplied, deploymentFailed } from './deployment.ts'
import type { EventOf } from './envelope.ts'
import { documentFetched, jwksFetched } from './fetch.ts'
import { pinLifted, pinSet } from './pin.ts'
import { digestsDiffered, digestTaken, leaseAcquired, leaseLost } from './replica.ts'
import {
  relistFinished,
  relistStarted,
  resourceApplied,
  resourceDeleted,
  resourceRefused,
} from './resource.ts'
import {
  rolloutEnded,
  rolloutPaused,
  rolloutResumed,
  rolloutSkipped,
  rolloutStarted,
  rolloutStepped,
} from './rollout.ts'
import { sessionsEnded } from './sessions.ts'
import { timerFired } from './timer.ts'
import { toolsApproved, toolsObserved } from './tools.ts'

/** All event types in their current version, in the order of the documentation. */
export const vocabulary = [
  resourceApplied,
  resourceDeleted,
  resourceRefused,
  relistStarted,
  relistFinished,
  conditionsDecided,
  desiredPublished,
  proxyConnected,
  proxyDisconnected,
  configAcked,
  configRejected,
  leaseAcquired,
  leaseLost,
  digestTaken,
  digestsDiffered,
  timerFired,
  jwksFetched,
  documentFetched,
  deploymentApplied,
  deploymentFailed,
  definitionsObserved,
  apiKeysChanged,
  pinSet,
  pinLifted,
  protectionSet,
  changePassed,
  changeHeld,
  changeApproved,
  changeRejected,
  rolloutStarted,
  rolloutSkipped,
  rolloutStepped,
  rolloutPaused,
  rolloutResumed,
  rolloutEnded,
  toolsObserved,
  toolsApproved,
  sessionsEnded,
  budgetDefined,
  budgetOpened,
  budgetGranted,
  budgetCharged,
  budgetRecalled,
  budgetReleased,
  budgetAdjusted,
  budgetClosed,
  budgetErased,
  budgetRenamed,
  budgetWarned,
  budgetNotified,
] as const

/** Any event of the log; `type` discriminates the union. */
export type SluiceEvent = EventOf<(typeof vocabulary)[number]>

/** Observations of resources: the events that a watch source produces. */
export type ResourceEvent =
  | EventOf<typeof resourceApplied>
  | EventOf<typeof resourceDeleted>
  | EventOf<typeof resourceRefused>
  | EventOf<typeof relistStarted>
  | EventOf<typeof relistFinished>
